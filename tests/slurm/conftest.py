"""The labs that the tests of one module share, and a site or an adapter per test."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from slurm_fair.lab import Lab, LabSpec, NodeGroup, available
from tests.slurm.harness import Site, playing, wait_until
from tests.support.adapter_on_slurm import Adapter
from tests.support.on_slurm import Slurm

HOPS = '[policy]\nname = "hops"\n'
# n3 is shared with a partition that is not managed, n4 is only there.
SCENARIO_SPEC = LabSpec(
    nodes=4,
    gpus_per_node=8,
    partitions={"gpu": ("n1", "n2", "n3"), "other": ("n3", "n4")},
    tenants={"vision": 1, "nlp": 1, "speech": 2},
    users={"games": ("vision", "nlp"), "news": ("speech",)},
    operators=("daemon",),
)


@pytest.fixture(scope="module")
def scenario_lab() -> Iterator[Lab]:
    """Three managed nodes with eight GPUs each, one of them shared, and one beyond our scope."""
    if (reason := available()) is not None:
        pytest.skip(reason)
    with Lab(spec=SCENARIO_SPEC) as lab:
        yield lab


@pytest.fixture
def slurm(scenario_lab: Lab) -> Iterator[Slurm]:
    """The lab of the scenarios, emptied behind the test."""
    yield Slurm(scenario_lab)
    for user in ("root", *SCENARIO_SPEC.users):
        scenario_lab.run("scancel", "-u", user, check=False)
    wait_until(lambda: not scenario_lab.run("squeue", "-h", "-a").stdout, 60, "the queue is empty")


@pytest.fixture
def new_site(scenario_lab: Lab) -> Iterator[Callable[..., Site]]:
    """Makes sites, and ends them: what must always hold is looked at before and nothing of them is left."""
    sites: list[Site] = []

    def make(*args: object, **options: object) -> Site:
        site = Site(scenario_lab, *args, **options)  # type: ignore[arg-type]
        sites.append(site)
        return site

    yield make
    try:
        for site in sites:
            site.assert_clean()
    finally:
        for site in sites:
            site.end()


@pytest.fixture(scope="module")
def two_types(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """A cluster with as many nodes of each of two types as the module says by its OF_EACH_TYPE."""
    if (reason := available()) is not None:
        pytest.skip(reason)
    nodes = request.module.OF_EACH_TYPE
    with Lab(spec=LabSpec(node_types=(NodeGroup(nodes, 4, "a100"), NodeGroup(nodes, 4, "v100")))) as lab:
        yield lab


@pytest.fixture
def site(two_types: Lab, request: pytest.FixtureRequest) -> Iterator[Site]:
    """A controller of its own on the two types, under hops, with the module's LEASE and EXTRA settings."""
    with playing(Site(two_types, lease=request.module.LEASE, extra=HOPS + request.module.EXTRA)) as site:
        yield site


@pytest.fixture(scope="module")
def adapter_lab(request: pytest.FixtureRequest) -> Iterator[Slurm]:
    """The small cluster that the module describes by its SPEC."""
    with Lab(spec=request.module.SPEC) as running:
        yield Slurm(running)


@pytest.fixture(params=["begin", "hold"])
def adapter(adapter_lab: Slurm, request: pytest.FixtureRequest) -> Iterator[Adapter]:
    """A fresh adapter under each gate, on an emptied cluster."""
    yield Adapter(adapter_lab, request.param)
    adapter_lab.clear()


@pytest.fixture
def begin(adapter_lab: Slurm) -> Iterator[Adapter]:
    """A fresh adapter under the begin gate."""
    yield Adapter(adapter_lab, "begin")
    adapter_lab.clear()


@pytest.fixture
def hold(adapter_lab: Slurm) -> Iterator[Adapter]:
    """A fresh adapter under the hold gate."""
    yield Adapter(adapter_lab, "hold")
    adapter_lab.clear()
