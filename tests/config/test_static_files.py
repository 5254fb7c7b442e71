from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import staticfiles_storage
from httpx import ASGITransport, AsyncClient, Response

from config.runtime.prepare import collect_static, static_digest
from config.static import StaticFiles


async def nothing_here(scope, receive, send) -> None:
    await send({"type": "http.response.start", "status": 418, "headers": []})
    await send({"type": "http.response.body", "body": b""})


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("static")


@pytest.fixture(autouse=True)
def hashed(settings, collected: Path):
    settings.HASHED_STATIC = True
    settings.WHITENOISE_USE_FINDERS = False
    settings.STATIC_ROOT = collected
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": "config.storage.HashedStorage"}}
    collect_static(lambda text: None)


async def get(path: str, method: str = "GET", **headers: str) -> Response:
    transport = ASGITransport(StaticFiles(nothing_here))
    async with AsyncClient(transport=transport, base_url="http://testserver") as client:
        return await client.request(method, path, headers=headers)


def content_of(name: str) -> bytes:
    return Path(str(finders.find(name))).read_bytes()


async def test_a_hashed_name_is_cached_for_good_and_compressed():
    answer = await get(staticfiles_storage.url("css/app.css"), **{"Accept-Encoding": "gzip"})
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "max-age=315360000, public, immutable"
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.headers["vary"] == "Accept-Encoding"
    assert answer.headers["x-content-type-options"] == "nosniff"


async def test_a_plain_name_is_asked_for_again_soon():
    answer = await get("/static/css/app.css", **{"Accept-Encoding": "identity"})
    assert answer.headers["cache-control"] == "max-age=60, public"
    assert answer.content == content_of("css/app.css")
    again = await get("/static/css/app.css", **{"If-None-Match": answer.headers["etag"]})
    assert again.status_code == 304
    assert again.content == b""


@pytest.mark.parametrize(
    "name",
    ["plotly/plotly.min.js", "django_htmx/htmx-2.min.js", "drf_spectacular_sidecar/swagger-ui-dist/swagger-ui.css"],
)
async def test_what_packages_ship_is_served_by_us_whole(name: str):
    answer = await get(staticfiles_storage.url(name), **{"Accept-Encoding": "gzip"})
    assert answer.status_code == 200
    assert answer.content.startswith(content_of(name)[:1000])
    assert int(answer.headers["content-length"]) < len(answer.content)


async def test_modules_import_each_other_by_hashed_names():
    answer = await get(staticfiles_storage.url("js/app.js"))
    assert staticfiles_storage.url("js/theme.js").rpartition("/")[2] in answer.text


async def test_a_part_of_a_file_can_be_asked_for():
    answer = await get("/static/css/app.css", **{"Accept-Encoding": "identity", "Range": "bytes=0-9"})
    assert answer.status_code == 206
    assert len(answer.content) == 10


async def test_head_has_no_body_and_writing_is_refused():
    assert (await get("/static/css/app.css", "HEAD")).content == b""
    assert (await get("/static/css/app.css", "POST")).status_code == 405


@pytest.mark.parametrize(
    "path", ["/static/../manage.py", "/static/%2e%2e/manage.py", "/static/nothing.css", "/overview"]
)
async def test_everything_else_is_left_to_the_application(path: str):
    assert (await get(path)).status_code == 418


def test_a_compressed_copy_lies_beside_each_file(collected: Path):
    plain = collected / "css" / "app.css"
    assert gzip.decompress(plain.with_suffix(".css.gz").read_bytes()) == plain.read_bytes()


def test_the_digest_is_stable():
    assert static_digest() == static_digest()


def test_files_are_collected_again_only_when_one_changed(settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    said: list[str] = []
    collect_static(said.append)
    assert said == []
    monkeypatch.setattr("config.runtime.prepare.call_command", lambda name, **options: said.append(name))
    (tmp_path / "new.css").write_text("a { color: red }")
    settings.STATICFILES_DIRS = [*settings.STATICFILES_DIRS, tmp_path]
    collect_static(said.append)
    assert said == ["collecting and compressing static files", "collectstatic"]
