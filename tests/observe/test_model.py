"""The model of time, held against a plain simulation of the two clocks and against what any such model must keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from observed_samples import events

from perflint.errors import PerflintError
from perflint.observe.model.cost import gains, step_time
from perflint.observe.model.hardware import HARDWARE, hardware, nearest
from perflint.observe.model.replay import Replay
from perflint.observe.model.times import Timed, timed
from perflint.observe.trace import Event

H100 = HARDWARE["h100"]
_MICROSECONDS = st.integers(0, 40).map(float)


def _operation(host: float, device: float, queued: bool, waits: bool, wait: float) -> Timed:
    return Timed(host, device if queued else 0.0, waits, queued, False, wait if waits else 0.0)


OPERATIONS = st.lists(
    st.builds(_operation, _MICROSECONDS, _MICROSECONDS, st.booleans(), st.booleans(), _MICROSECONDS),
    min_size=1,
    max_size=24,
)


def simulated(operations: Sequence[Timed], removed: frozenset[int] = frozenset()) -> float:
    """Microseconds a step in the long run, by running two clocks through many steps."""
    host = device = 0.0
    ends = []
    for _ in range(120):
        for index, one in enumerate(operations):
            host += one.host_us
            if one.queued:
                device = max(device, host) + one.device_us
            if one.waits and index not in removed:
                host = max(host, device) + one.wait_us
        ends.append(max(host, device))
    # Far from the start, over an even number of steps: such a loop may have a period of two.
    return (ends[119] - ends[59]) / 60


@given(OPERATIONS)
def test_the_length_of_a_step_is_that_of_a_simulation(operations: list[Timed]) -> None:
    assert Replay(operations).period() == pytest.approx(simulated(operations), abs=30)


@given(OPERATIONS, st.sets(st.integers(0, 23)))
def test_without_some_waits_too(operations: list[Timed], some: set[int]) -> None:
    removed = frozenset(index for index in some if index < len(operations) and operations[index].waits)
    replay = Replay(operations)
    whole = replay.period()
    less = replay.without(removed)
    assert less == pytest.approx(simulated(operations, removed), abs=30)
    assert less <= whole
    assert replay.period() == whole
    bare = Replay([one._replace(waits=False) if at in removed else one for at, one in enumerate(operations)])
    assert less == bare.period()


@given(OPERATIONS)
def test_a_step_is_at_least_what_host_and_device_have_to_do(operations: list[Timed]) -> None:
    replay = Replay(operations)
    assert replay.period() >= replay.freely() == max(replay.busy.host, replay.busy.device)
    waits = [index for index, one in enumerate(operations) if one.waits]
    assert replay.without(waits) == pytest.approx(replay.freely())


KINDS = st.sampled_from(["read", "shape", "to-host", "to-device", "synchronize", "host-allocation", "launch"])
EVENTS = st.lists(
    st.builds(
        Event,
        operation=st.just("aten::some"),
        kind=KINDS,
        waits=st.booleans(),
        site=st.integers(0, 4),
        phase=st.just("forward"),
        flops=st.floats(0, 1e12),
        bytes=st.integers(0, 1 << 30),
        launches=st.integers(0, 5),
        pinned=st.booleans(),
        dtype=st.sampled_from(["", "float32", "bfloat16", "tfloat32", "complex64"]),
        host_us=st.none() | st.floats(0, 1000),
    ),
    max_size=40,
)


@given(EVENTS, st.sampled_from(list(HARDWARE.values())))
def test_gains_are_what_the_step_gets_shorter(found: list[Event], on: object) -> None:
    assert isinstance(on, type(H100))
    time = step_time(found, on)
    listed = gains(found, on, lambda event: event.site)
    assert [one.alone_ms for one in listed] == sorted((one.alone_ms for one in listed), reverse=True)
    for before, one in zip([None, *listed], listed):
        # The measured host time of a wait is not used, so it must not be of what is left of it either.
        bare = [
            replace(event, waits=False, host_us=None) if event.waits and event.site == one.key else event
            for event in found
        ]
        without = step_time(bare, on)
        assert one.alone_ms == pytest.approx(time.step_ms - without.step_ms, abs=1e-6)
        assert one.together_ms >= max(one.alone_ms, before.together_ms if before else 0) - 1e-6
    if listed:
        assert listed[-1].together_ms == pytest.approx(time.step_ms - time.without_waits_ms, abs=1e-6)


def _launch(microseconds: float) -> Event:
    return Event(
        "aten::mm", "launch", waits=False, site=0, phase="forward",
        flops=microseconds / 1e6 * H100.peak("float32") * H100.reached_flops, launches=1, dtype="float32",
    )  # fmt: skip


def _wait(site: int) -> Event:
    return Event("aten::_local_scalar_dense", "read", waits=True, site=site, phase="forward", bytes=4)


def test_a_wait_behind_another_costs_nothing_alone_and_both_cost_together() -> None:
    first, second = gains([_launch(500)] * 4 + [_wait(1), _wait(2)] + [_launch(1)] * 100, H100, lambda one: one.site)
    assert first.alone_ms < 0.02
    assert second.alone_ms < 0.02
    assert min(first.last_ms, second.last_ms) > 0.3
    assert second.together_ms > 0.3


def test_a_wait_in_the_middle_costs_more_than_the_same_at_the_end_of_a_step_that_the_device_bounds() -> None:
    work = [_launch(100)] * 20
    [middle] = gains([*work[:10], _wait(1), *work[10:]], H100, lambda one: one.site)
    many_small = [_launch(1)] * 100
    [end] = gains([*work, _wait(1)], H100, lambda one: one.site)
    [before_small] = gains([*work, _wait(1), *many_small], H100, lambda one: one.site)
    assert end.alone_ms < 0.05
    assert middle.alone_ms < 0.05
    assert before_small.alone_ms > 0.5


def test_one_step_on_several_accelerators() -> None:
    lengths = {key: step_time(events(), on).step_ms for key, on in HARDWARE.items()}
    assert lengths["t4"] > lengths["a100"] > lengths["h100"] >= lengths["h200"]
    assert step_time(events(), HARDWARE["t4"]).bound_by == "device"
    copying = [Event("aten::copy_", "to-device", waits=False, site=0, phase="data", bytes=1 << 30, pinned=True)]
    assert step_time(copying, H100).bound_by == "copies"
    assert step_time([_launch(0.1)] * 10, H100).bound_by == "host"


def test_what_an_operation_costs() -> None:
    view = Event("aten::view", "launch", waits=False, site=0, phase="forward")
    pageable = Event("aten::copy_", "to-device", waits=True, site=0, phase="data", bytes=10 << 20)
    made = Event("aten::zeros", "host-allocation", waits=False, site=0, phase="data", bytes=10 << 20)
    costs = timed([view, pageable, replace(pageable, pinned=True, waits=False), made, _launch(700)], H100)
    assert (costs[0].device_us, costs[0].queued) == (0.0, False)
    assert costs[1].host_us > costs[2].host_us == H100.dispatch_us
    assert costs[1].device_us == costs[2].device_us > H100.floor_us
    assert (costs[1].wait_us, costs[2].wait_us) == (H100.wait_us, 0.0)
    assert (costs[3].queued, costs[3].device_us) == (False, 0.0)
    assert costs[4].device_us == pytest.approx(700)
    assert timed([replace(view, host_us=123.0)], H100)[0].host_us == 123.0
    # The measured time of a wait is mostly waiting, which the replay adds itself.
    assert timed([replace(_wait(0), host_us=9000.0)], H100)[0].host_us == pytest.approx(H100.dispatch_us, rel=1e-3)


def test_an_empty_step_takes_no_time() -> None:
    assert step_time([], H100).step_ms == 0
    assert step_time([], H100).share(1.0) == 0
    assert gains([], H100, lambda one: one.site) == []


def test_hardware_is_found_by_its_names() -> None:
    assert hardware("H100") is hardware("h100") is H100
    assert hardware("RTX 4090").key == "rtx4090"
    with pytest.raises(PerflintError, match="no hardware model 'v100'; there are a100, h100, h200, l4, t4, rtx4090"):
        hardware("v100")
    assert all(nearest(one.cuda_name) is one for one in HARDWARE.values())
    assert nearest("NVIDIA L40S") is not HARDWARE["l4"]
    assert nearest("GeForce GTX 1080") is None


@pytest.mark.parametrize("one", HARDWARE.values(), ids=HARDWARE)
def test_every_figure_of_a_data_sheet_has_its_source(one: object) -> None:
    assert isinstance(one, type(H100))
    assert {"peaks", "bandwidth", "bus"} <= set(one.sources)
    assert all(source.document and source.read_at.startswith("https://") for source in one.sources.values())
    assert {"float32", "float16"} <= set(one.peaks)
    assert one.peak("float16") >= one.peak("float32")
    assert one.bandwidth > one.bus
