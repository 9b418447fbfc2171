"""The configuration files of the lab, as text."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from slurm_fair.errors import InputError
from slurm_fair.lab import LabSpec, NodeGroup
from slurm_fair.lab.spec import (
    SOCKET_PATH_BYTES,
    LabSite,
    associations,
    cgroup_conf,
    database_init,
    gres_conf,
    longest_socket_path,
    slurm_conf,
    slurmdbd_conf,
)

SITE = LabSite(
    folder=Path("/tmp/lab-x"),
    hostname="host",
    loopback_only=True,
    user="root",
    version=(22, 5),
    ctld_port=20_000,
    dbd_port=20_001,
    mariadb_port=20_002,
    first_node_port=20_003,
    database_password="secret",
)
MIXED = LabSpec(node_types=(NodeGroup(2, 8, "a100"), NodeGroup(1, 4, "h100", cpus=16), NodeGroup(1, gpus=0)))


def settings(spec: LabSpec) -> Mapping[str, str]:
    """The plain lines of slurm.conf."""
    lines = [line for line in slurm_conf(spec, SITE).splitlines() if " " not in line]
    said = dict(line.split("=", 1) for line in lines)
    assert len(said) == len(lines), "a setting is written twice"
    return said


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ((22, 5), None),
        ((23, 11), None),
        ((24, 11), "CgroupPlugin=disabled\n"),
        ((26, 5), "CgroupPlugin=disabled\n"),
    ],
)
def test_cgroups_are_switched_off_only_where_slurm_knows_the_word(
    version: tuple[int, int], expected: str | None
) -> None:
    assert cgroup_conf(dataclasses.replace(SITE, version=version)) == expected


def test_a_setting_overrides_its_base_line_however_it_is_spelled() -> None:
    said = settings(LabSpec(settings={"killwait": "30", "MaxJobId": "100"}))
    assert said["KillWait"] == "30"
    assert "killwait" not in said
    assert said["MaxJobId"] == "100"


def test_an_empty_setting_drops_the_line() -> None:
    assert "DefMemPerCPU" not in settings(LabSpec(settings={"DefMemPerCPU": ""}))


def test_the_way_to_the_database_uses_the_labs_own_munge() -> None:
    assert settings(LabSpec())["AccountingStoragePass"] == "/tmp/lab-x/munge/sock"
    assert settings(LabSpec())["AccountingStorageEnforce"] == "associations,limits,qos"


def test_slurm_listens_on_one_address_only_where_the_machines_name_allows_it() -> None:
    assert "CommunicationParameters=NoCtldInAddrAny,NoInAddrAny" in slurm_conf(LabSpec(), SITE)
    assert "CommunicationParameters=NoInAddrAny" in slurmdbd_conf(SITE)
    elsewhere = dataclasses.replace(SITE, loopback_only=False)
    assert "InAddrAny" not in slurm_conf(LabSpec(), elsewhere) + slurmdbd_conf(elsewhere)


def test_without_a_database_nothing_needs_slurmdbd() -> None:
    said = settings(LabSpec(database=False))
    assert not [key for key in said if key.startswith("AccountingStorage")]
    assert "PriorityWeightFairshare" not in said


def test_each_group_of_nodes_has_its_own_ports_and_devices() -> None:
    nodes = [line for line in slurm_conf(MIXED, SITE).splitlines() if line.startswith("NodeName")]
    common = "NodeAddr=127.0.0.1 NodeHostname=host"
    assert nodes == [
        f"NodeName=n[1-2] {common} Port=[20003-20004] CPUs=64 RealMemory=512000 Gres=gpu:a100:8 State=UNKNOWN",
        f"NodeName=n3 {common} Port=20005 CPUs=16 RealMemory=512000 Gres=gpu:h100:4 State=UNKNOWN",
        f"NodeName=n4 {common} Port=20006 CPUs=64 RealMemory=512000 State=UNKNOWN",
    ]
    assert gres_conf(MIXED, SITE).splitlines() == [
        "AutoDetect=off",
        "NodeName=n[1-2] Name=gpu Type=a100 File=/tmp/lab-x/dev/gpu[0-7]",
        "NodeName=n3 Name=gpu Type=h100 File=/tmp/lab-x/dev/gpu[0-3]",
    ]
    assert MIXED.node_names == ("n1", "n2", "n3", "n4")


def test_a_job_gets_its_share_of_the_memory_by_default() -> None:
    assert settings(LabSpec(cpus=64, memory_mb=512_000))["DefMemPerCPU"] == "8000"


def test_the_first_partition_is_the_default() -> None:
    spec = LabSpec(partitions={"gpu": ("n1", "n2"), "other": ("n[3-4]",)})
    lines = [line for line in slurm_conf(spec, SITE).splitlines() if line.startswith("Partition")]
    assert lines == [
        "PartitionName=gpu Nodes=n1,n2 Default=YES State=UP",
        "PartitionName=other Nodes=n[3-4] Default=NO State=UP",
    ]


def test_a_hook_is_switched_on_only_where_there_is_one() -> None:
    assert "JobSubmitPlugins" not in settings(LabSpec())
    assert settings(LabSpec(job_submit=Path("hook.lua")))["JobSubmitPlugins"] == "lua"


def test_everyone_belongs_to_the_accounts_that_were_asked_for() -> None:
    spec = LabSpec(
        tenants={"vision": 1, "nlp": 2},
        users={"games": ("nlp",), "nobody": ("vision", "nlp")},
        operators=("daemon", "games"),
    )
    operator = ":AdminLevel='Operator'"
    assert associations(spec, "alice").splitlines() == [
        "Cluster - 'lab':Fairshare=1",
        "Parent - 'root'",
        "Account - 'vision':Description='vision':Fairshare=1",
        "Account - 'nlp':Description='nlp':Fairshare=2",
        f"User - 'daemon':DefaultAccount='root'{operator}:Fairshare=1",
        "Parent - 'vision'",
        "User - 'alice':DefaultAccount='vision':Fairshare=1",
        "User - 'nobody':DefaultAccount='vision':Fairshare=1",
        "Parent - 'nlp'",
        "User - 'alice':DefaultAccount='vision':Fairshare=1",
        f"User - 'games':DefaultAccount='nlp'{operator}:Fairshare=1",
        "User - 'nobody':DefaultAccount='vision':Fairshare=1",
    ]


def test_the_database_is_reached_by_address_and_password() -> None:
    said = dict(line.split("=", 1) for line in slurmdbd_conf(SITE).splitlines())
    assert (said["StorageHost"], said["StoragePort"], said["StoragePass"]) == ("127.0.0.1", "20002", "secret")
    assert "IDENTIFIED BY 'secret'" in database_init(SITE)


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        (lambda: LabSpec(tenants={"two words": 1}), "is no name for Slurm"),
        (lambda: LabSpec(partitions={"gpu\nSlurmUser=evil": ("ALL",)}), "is no name for Slurm"),
        (lambda: LabSpec(gpu_type="a:100"), "is no name for Slurm"),
        (lambda: LabSpec(nodes=0), "at least one node"),
        (lambda: LabSpec(users={"games": ("chess",)}), "not among the tenants"),
        (lambda: LabSpec(partitions={}), "at least one partition"),
        (lambda: LabSpec(tenants={"vision": -1}), "the share of a tenant"),
    ],
)
def test_what_slurm_would_choke_on_is_refused(spec: Callable[[], LabSpec], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        spec()


def test_the_longest_step_socket_of_a_short_folder_fits() -> None:
    assert longest_socket_path(Path("/tmp/lab-0123abcd"), ("n1", "n1024")) <= SOCKET_PATH_BYTES
    assert longest_socket_path(Path("/tmp", "x" * 80), ("n1",)) > SOCKET_PATH_BYTES
