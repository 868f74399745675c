"""Where a play stands: beside the others on the shared cluster, or on a cluster of its own, which it may hurt."""

import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from harness.contracts.scenario import Scenario
from harness.contracts.subject import Subject
from harness.postgres.cluster import Cluster, open_cluster
from harness.postgres.options import ServerOption
from harness.run.provision import Site, open_site


def cannot_stand(scenario: Scenario, cluster: Cluster) -> str | None:
    """Why a scenario cannot be played on this server, or None.

    One that only wants long leases ended can be: it waits for the shorter leases that the subject declares.
    """
    if scenario.hurts is None or scenario.lease_seconds is not None or cluster.may_be_hurt:
        return None
    return f"it hurts the {scenario.hurts}, and {cluster.address.shown()} is somebody's; use --server embedded or local"


@asynccontextmanager
async def stage(site: Site, scenario: Scenario, server: ServerOption) -> AsyncIterator[Site]:
    """The site that a scenario is played on."""
    if scenario.hurts is None or not site.cluster.may_be_hurt:
        yield site
        return
    folder = site.folder / "logs" / f"{scenario.name}-server"
    folder.mkdir(parents=True, exist_ok=True)
    async with open_cluster(server, site.watchdog, folder, clock=scenario.hurts == "clock") as cluster:
        subject = with_lease(site.subject, scenario.lease_seconds) if cluster.clock is not None else site.subject
        yield await open_site(subject, cluster, site.watchdog, folder, exclusive=True)


def with_lease(subject: Subject, lease_seconds: float | None) -> Subject:
    """The subject with another lease, its heartbeat and its takeover in the proportion that it declares them in."""
    if lease_seconds is None or subject.lease_seconds is None:
        return subject
    factor = lease_seconds / subject.lease_seconds
    heartbeat, within = subject.heartbeat_seconds, subject.takeover_within_seconds
    return dataclasses.replace(
        subject,
        lease_seconds=lease_seconds,
        jobs=subject.jobs.with_lease(lease_seconds),
        heartbeat_seconds=None if heartbeat is None else heartbeat * factor,
        takeover_within_seconds=None if within is None else within * factor,
    )
