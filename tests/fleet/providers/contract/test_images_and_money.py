"""Images that can be started from, and what is left of prepaid money."""

from __future__ import annotations

from decimal import Decimal

import pytest

from fleet.providers.base import Capability, ImageState, Money
from fleet.providers.errors import ProviderError, ScopeMissing, Unavailable
from tests.fleet.providers.contract.cast import each

IMAGES, SAVE, BALANCE = Capability.IMAGES, Capability.SAVE_IMAGE, Capability.BALANCE


@each(IMAGES)
@pytest.mark.parametrize("count", [0, 1, 3])
def test_every_image_is_listed_with_a_name(adapter, fake, count):
    ids = fake.seed_images(count)
    images = list(adapter.images())
    assert sorted(image.external_id for image in images) == sorted(ids)
    assert all(image.name and image.state is ImageState.READY for image in images)


@each(IMAGES)
def test_images_that_break_off_raise(adapter, fake):
    fake.seed_images(3)
    fake.cut_listing("images")
    with pytest.raises(Unavailable):
        list(adapter.images())


@each(IMAGES, when=lambda fake: fake.scoped)
def test_a_key_that_may_not_read_images_is_told_so(adapter, fake):
    fake.refuse(403, on="images")
    with pytest.raises(ScopeMissing):
        list(adapter.images())


@each(IMAGES, SAVE)
def test_a_saved_image_is_listed_when_it_is_ready(adapter, fake):
    (ref,) = fake.seed()
    saved = adapter.save_image(ref, "vision-2")
    assert saved.state in {ImageState.PENDING, ImageState.READY}
    fake.settle()
    # Some answer with the id of a task alone: the image is then found by its name.
    (image,) = (
        one for one in adapter.images() if saved.external_id in {"", one.external_id} and "vision-2" in one.name
    )
    assert image.state is ImageState.READY


@each(SAVE)
def test_saving_that_is_refused_is_not_tried_again(adapter, fake):
    (ref,) = fake.seed()
    fake.refuse(500, on="save_image")
    with pytest.raises(ProviderError):
        adapter.save_image(ref, "vision-2")
    assert len(fake.asked("save_image")) == 1


@each(BALANCE)
@pytest.mark.parametrize("amount", ["12.34", "0.1", "-3.5", "0"])
def test_the_balance_is_exact_to_the_last_digit(adapter, fake, amount):
    fake.purse = Decimal(amount)
    assert adapter.balance() == Money(Decimal(amount), type(adapter).semantics.currency)


@each(BALANCE)
def test_a_balance_that_cannot_be_read_is_no_zero(adapter, fake):
    fake.refuse(500, on="balance")
    with pytest.raises(Unavailable):
        adapter.balance()
