"""Whether a clock is off, or a batch only had to wait."""

from __future__ import annotations

from fleet.telemetry.readings import agreed_skew


def corrections(*measured: float) -> list[float]:
    """What is applied to each of these batches, one after another."""
    applied, all_applied, last = 0.0, [], list[float]()
    for value in measured:
        last = [*last, value][-3:]
        applied = agreed_skew(measured=last, applied=applied)
        all_applied.append(applied)
    return all_applied


def test_a_close_clock_is_right():
    assert corrections(0.2, -4.9, 4.9) == [0, 0, 0]


def test_batches_that_waited_for_a_restart_keep_their_moments():
    assert corrections(0.1, 9.0, 0.2) == [0, 0, 0]
    assert corrections(0.1, 70.0, 38.0, 6.5, 0.1) == [0, 0, 0, 0, 0]


def test_a_clock_that_is_ahead_is_corrected_at_once():
    assert corrections(0.1, -30.0) == [0, -30]


def test_a_clock_that_is_behind_is_corrected_when_three_batches_agree():
    assert corrections(20.4, 20.1, 20.2, 20.3) == [0, 0, 20, 20]


def test_a_clock_that_is_far_behind_is_corrected_at_once():
    assert corrections(3600.2) == [3600]


def test_the_same_correction_is_kept_while_it_fits():
    assert corrections(-3600.4, -3602.0, -3598.0) == [-3600, -3600, -3600]


def test_a_waiting_batch_of_a_corrected_clock_changes_nothing():
    assert corrections(3600.0, 3612.0, 3600.3) == [3600, 3600, 3600]


def test_a_journey_that_took_longer_keeps_the_correction_and_so_the_keys():
    assert corrections(3600.4, 3603.0, 3597.0) == [3600, 3600, 3600]


def test_a_clock_that_was_set_anew_is_measured_anew():
    assert corrections(-3600.0, -1800.0) == [-3600, -3600 + 1800]


def test_a_clock_that_was_set_right_is_right():
    assert corrections(-3600.0, 0.3) == [-3600, 0]
