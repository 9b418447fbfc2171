"""Learning: what is kept of samples, whose it is, and what is not believed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from slurm_fair.throughput import ANY_NODE, JobClass, Keeping, Known, Samples, learned, learned_ends
from tests.support.speed_samples import BERT, DAY, NAN, OTHER, ends, samples

KEEPING = Keeping(samples=4, node_samples=2, shapes=3, node_shapes=2, classes=2)


def kept(*rows: dict[str, Any], now: float = 1e6, keeping: Keeping = KEEPING) -> Samples:
    """The samples that are known after these."""
    return learned(Known(), samples(*rows), now, keeping).samples


def test_a_report_of_a_node_is_known_of_the_node_and_of_its_type() -> None:
    known = kept({"node": "n1", "time": 5.0}, {"time": 6.0})
    assert sorted(known.node.tolist()) == [ANY_NODE, ANY_NODE, 0]
    assert known.node_names == ("n1",)


def test_a_report_of_a_run_on_two_nodes_counts_once_for_the_type() -> None:
    known = kept(*({"node": name, "gpus": 2, "nodes": 2, "time": 5.0} for name in ("n1", "n2")))
    assert sorted(known.node.tolist()) == [ANY_NODE, 0, 1]


def test_a_run_over_two_gpu_types_tells_nothing_of_either() -> None:
    mixed = [{"node": f"n{kind}", "kind": kind, "gpus": 2, "nodes": 2, "time": 5.0} for kind in "ab"]
    assert not len(kept(*mixed))


def test_of_each_shape_the_newest_samples_stay() -> None:
    known = kept(*({"time": float(time), "job": time} for time in range(9)))
    assert sorted(known.time.tolist()) == [5.0, 6.0, 7.0, 8.0]


def test_a_job_that_reports_often_does_not_push_out_the_others() -> None:
    often = [{"time": 100.0 + time, "job": 1} for time in range(50)]
    known = kept({"time": 1.0, "job": 2}, {"time": 2.0, "job": 3}, *often)
    assert sorted(known.job.tolist()) == [1, 1, 2, 3]


def test_the_same_report_learned_twice_counts_once() -> None:
    known = learned(Known(), samples({"time": 1.0}), 9.0, KEEPING)
    again = learned(known, samples({"time": 1.0}), 9.0, KEEPING)
    assert len(again.samples) == len(known.samples) == 1


def test_of_a_class_the_shapes_that_were_measured_last_stay() -> None:
    known = kept(*({"gpus": gpus, "time": float(gpus), "job": gpus} for gpus in range(1, 9)))
    assert sorted(known.gpus.tolist()) == [6, 7, 8]


def test_of_a_tenant_the_classes_that_were_seen_last_stay_and_no_other_tenant_loses_any() -> None:
    many = [{"cls": JobClass("lab", f"name={each}"), "time": 10.0 + each, "job": each} for each in range(30)]
    known = kept({"cls": OTHER, "time": 1.0, "job": 99}, *many)
    assert set(known.classes) == {OTHER, JobClass("lab", "name=28"), JobClass("lab", "name=29")}


def test_what_is_very_old_is_forgotten() -> None:
    known = learned(Known(), samples({"time": 0.0}), 0.0, KEEPING)
    later = 181 * DAY
    assert learned(known, samples({"time": later, "gpus": 2}), later, KEEPING).samples.gpus.tolist() == [2]


BAD: tuple[dict[str, Any], ...] = (
    {"rate": 0.0}, {"rate": -5.0}, {"rate": NAN}, {"rate": float("inf")}, {"time": 11.0}, {"time": NAN},
    {"gpus": 0}, {"nodes": 0}, {"gpus": 2, "nodes": 3}, {"gpus": 4, "nodes": 2, "most": 1},
    {"gpus": 4, "nodes": 2, "most": 4},
)  # fmt: skip


@pytest.mark.parametrize("bad", BAD, ids=str)
def test_a_row_that_cannot_be_costs_that_row(bad: dict[str, Any]) -> None:
    known = kept({"time": 3.0, "job": 7}, {"time": 4.0, "job": 8, **bad}, now=10.0)
    assert known.job.tolist() == [7]


def test_an_index_out_of_range_costs_that_row() -> None:
    odd = samples({"job": 1}, {"job": 2}, {"job": 3}, {"job": 4})
    odd = odd.with_columns(
        job_class=np.array([0, 5, 0, 0]), gpu_type=np.array([0, 0, -1, 0]), node=np.array([-1, -1, -1, 3])
    )
    assert learned(Known(), odd, 1.0, KEEPING).samples.job.tolist() == [1]


def test_phases_that_cannot_be_are_not_said() -> None:
    known = kept({"data": -1.0, "forward": float("inf"), "backward": 0.5, "batch_size": -3.0})
    assert np.isnan([known.data[0], known.forward[0], known.batch_size[0]]).all()
    assert known.backward.tolist() == [0.5]


def test_names_that_nobody_uses_are_not_kept() -> None:
    known = kept({"cls": BERT, "kind": "a100"}, {"cls": OTHER, "kind": "v100", "rate": NAN})
    assert known.classes == (BERT,)
    assert known.gpu_types == ("a100",)


def test_nothing_new_changes_nothing() -> None:
    known = learned(Known(), samples({"time": 1.0}), 9.0, KEEPING)
    assert learned(known, Samples.none(), 9e9, KEEPING) is known


def test_of_ended_jobs_the_newest_stay_and_each_counts_once() -> None:
    known = learned_ends(Known(), ends([10.0] * 9, time=5.0), 5.0, KEEPING)
    assert len(known.ends) == 4
    again = learned_ends(known, ends([10.0], time=6.0, job=int(known.ends.job[0])), 6.0, KEEPING)
    assert len(again.ends) == 4
    assert 6.0 in again.ends.time.tolist()


def test_a_run_time_that_cannot_be_costs_that_row() -> None:
    known = learned_ends(Known(), ends([10.0, 0.0, -1.0, NAN]), 5.0, KEEPING)
    assert known.ends.seconds.tolist() == [10.0]


@pytest.mark.parametrize(
    "bad", [{"samples": 0}, {"classes": -1}, {"half_life_days": 0.0}, {"forget_days": NAN}], ids=str
)
def test_a_setting_that_would_keep_nothing_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="kept of speeds"):
        Keeping(**bad)
