"""The choice of GLPilot's techniques and of their sizes: made once, from the config, the hotness of rows, the hosts,
and
the memory there is; the same on every rank where it must be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Callable

import numpy as np
import psutil
import torch
from mpi4py import MPI

from glpilot.app.config.keys import AUTO, Config
from glpilot.app.embedding.copies import traffic
from glpilot.app.embedding.copies.hotness import Hotness, hottest
from glpilot.app.embedding.copies.staleness import max_ages
from glpilot.app.embedding.rows.optimizers.sparse_optimizer import SparseOptimizer
from glpilot.app.embedding.techniques import Techniques
from glpilot.app.runtime.communicator import Communicator

DEVICE_SHARE = 0.5  # of a device's free memory that the cache may take
BUFFER_ROWS_PER_OWNED_ROW = 3  # at most, which is what an owned row and Adam's state of it take


def layout_of(communicator: Communicator, config: Config) -> traffic.Layout:
    """How ranks lie on hosts, for the traffic model."""
    sums_on_host = config.aggregation.on_host and communicator.across_hosts is not None
    return traffic.Layout(communicator.num_hosts if sums_on_host else communicator.size, 4 * (config.embedding.dim + 1))


def far_rows(communicator: Communicator, offsets: np.ndarray) -> np.ndarray:
    """Which rows other hosts own, bool [num_nodes]."""
    return np.repeat(~communicator.is_near, np.diff(offsets))


def uses_copies(communicator: Communicator, config: Config) -> bool:
    """Whether rows of other hosts are buffered."""
    staleness = config.staleness
    return communicator.num_hosts > 1 and staleness.max_steps != 0 and staleness.max_missed_updates != 0


def uses_window(communicator: Communicator, config: Config) -> bool:
    """Whether gradients of rows of other hosts wait."""
    return communicator.num_hosts > 1 and config.aggregation.window_steps > 1


def may_use_cache(communicator: Communicator, config: Config, device: torch.device) -> bool:
    """Whether hot rows may be replicated. One host without a GPU has nothing to gain, but a user may want to see it."""
    cache = config.cache
    if cache.rows == AUTO and not cache.bytes and not cache.fraction:
        return communicator.num_hosts > 1 or device.type == "cuda"
    return bool(cache.rows or cache.bytes or cache.fraction)


def needs_hotness(communicator: Communicator, config: Config, device: torch.device) -> bool:
    """The same on every rank."""
    wanted = (
        uses_copies(communicator, config)
        or uses_window(communicator, config)
        or may_use_cache(communicator, config, device)
    )
    return communicator.world.allreduce(wanted, op=MPI.LOR)


def choose_techniques(
    communicator: Communicator, config: Config, offsets: np.ndarray, hotness: Hotness | None, device: torch.device
) -> Techniques:
    """Collective: what to use, given the hotness of rows; without it no technique is on."""
    cold_sync = "alltoall" if config.sync.cold == AUTO else config.sync.cold  # never moves more than the other
    sums_on_host = config.aggregation.on_host
    if hotness is None:
        return Techniques(cold_sync, sums_on_host)
    layout = layout_of(communicator, config)
    is_far = far_rows(communicator, offsets)
    report: list[str] = []
    hot_nids, hot_sync = _choose_cache(communicator, config, hotness, is_far, layout, device, report)
    is_cold_far = is_far
    is_cold_far[hot_nids] = False
    num_owned = int(offsets[communicator.rank + 1] - offsets[communicator.rank])
    buffer_rows = _choose_buffer(communicator, config, hotness, is_cold_far, num_owned, report)
    window_steps, window_rows = _choose_window(
        communicator, config, hotness.access_rates[is_cold_far], layout, cold_sync, report
    )
    return Techniques(
        cold_sync,
        sums_on_host,
        hotness=hotness,
        hot_nids=hot_nids,
        hot_sync=hot_sync,
        buffer_rows=buffer_rows,
        max_steps=config.staleness.max_steps if buffer_rows else 0,
        max_missed_updates=config.staleness.max_missed_updates,
        prefetches=buffer_rows > 0 and _wants_prefetch(config, device),
        window_steps=window_steps,
        window_rows=window_rows,
        report=tuple(report),
    )


def _wants_prefetch(config: Config, device: torch.device) -> bool:
    setting = config.staleness.prefetch
    return device.type == "cuda" if setting == AUTO else setting == "true"


def _choose_cache(
    communicator: Communicator,
    config: Config,
    hotness: Hotness,
    is_far: np.ndarray,
    layout: traffic.Layout,
    device: torch.device,
    report: list[str],
) -> tuple[np.ndarray, str]:
    """Collective: the hot rows, and how their gradients travel."""
    num_hot = _choose_num_hot(communicator, config, hotness, is_far, layout, device, report)
    hot_nids = hottest(hotness.update_rates, num_hot)
    num_touched = communicator.world.allreduce(float(hotness.access_rates[hot_nids].sum())) / layout.num_senders
    hot_sync: str = config.sync.hot
    if hot_sync == AUTO:
        hot_sync = traffic.choose_hot_sync(layout, num_hot, num_touched)
    if num_hot:
        kinds = ("sparse_allreduce", "dense_allreduce")
        report.append(
            f"device cache: {num_hot:,} rows, a rank's step touches {num_touched:,.0f}; gradients go by {hot_sync} "
            f"({_compare(lambda kind: traffic.hot_sync_bytes(kind, layout, num_hot, num_touched), kinds)})"
        )
    return hot_nids, hot_sync


def _choose_buffer(
    communicator: Communicator,
    config: Config,
    hotness: Hotness,
    is_cold_far: np.ndarray,
    num_owned: int,
    report: list[str],
) -> int:
    """How many copies to keep."""
    if not uses_copies(communicator, config):
        return 0
    staleness = config.staleness
    rates = hotness.access_rates[is_cold_far]
    ages = max_ages(hotness.update_rates[is_cold_far], staleness.max_steps, staleness.max_missed_updates)
    num_rows = _choose_buffer_rows(config, rates, ages, len(is_cold_far), num_owned)
    report.append(
        f"buffer: {num_rows:,} rows a rank for {rates.sum():,.0f} remote rows a step, of which "
        f"{traffic.fetch_rates(rates, ages).sum():,.0f} are expected to be fetched"
    )
    return num_rows


def _choose_window(
    communicator: Communicator,
    config: Config,
    rates: np.ndarray,
    layout: traffic.Layout,
    cold_sync: str,
    report: list[str],
) -> tuple[int, int]:
    """For how many steps gradients wait, and how many may; `rates` are those of other hosts' cold rows."""
    num_steps, num_rows = 1, 0
    if uses_window(communicator, config):
        num_steps = config.aggregation.window_steps
        num_rows = 2 * int(np.ceil(rates.sum())) * (num_steps - 2) + 64
    if communicator.num_hosts > 1:
        num_sent = traffic.send_rates(rates, num_steps).sum()
        kinds = ("alltoall", "sparse_allreduce")
        report.append(
            f"window: {num_steps} step{'s' * (num_steps > 1)}; of {rates.sum():,.0f} gradients of remote rows a step "
            f"{num_sent:,.0f} are expected to be sent, by {cold_sync} "
            f"({_compare(lambda kind: traffic.cold_sync_bytes(kind, layout, num_sent), kinds)})"
        )
    return num_steps, num_rows


def _compare(num_bytes: Callable[[str], float], kinds: Sequence[str]) -> str:
    return ", ".join(f"{kind} {num_bytes(kind) / 1e6:.2f} MB" for kind in kinds) + " a step and rank"


def _choose_buffer_rows(config: Config, rates: np.ndarray, ages: np.ndarray, num_nodes: int, num_owned: int) -> int:
    staleness = config.staleness
    if staleness.buffer_bytes:
        return staleness.buffer_bytes // (4 * config.embedding.dim + _BUFFER_ENTRY_BYTES)
    if staleness.buffer_fraction:
        return int(staleness.buffer_fraction * num_nodes)
    if isinstance(staleness.buffer_rows, int):
        return staleness.buffer_rows
    if not len(rates):
        return 0
    # Sets fill unevenly, so some more than the rows that are worth a copy.
    return min(int(1.1 * np.count_nonzero(ages > 0)) + 64, max(BUFFER_ROWS_PER_OWNED_ROW * num_owned, 64))


_BUFFER_ENTRY_BYTES = 32  # beside the row: see StalenessBuffer


def _choose_num_hot(
    communicator: Communicator,
    config: Config,
    hotness: Hotness,
    is_far: np.ndarray,
    layout: traffic.Layout,
    device: torch.device,
    report: list[str],
) -> int:
    """Collective."""
    if not communicator.world.allreduce(may_use_cache(communicator, config, device), op=MPI.LOR):
        return 0
    cache, world = config.cache, communicator.world
    num_nodes = len(is_far)
    floats = config.embedding.dim + 1 + SparseOptimizer(config.embedding.optimizer, config.embedding.dim).state_width
    limit = world.allreduce(min(_free_bytes(communicator, device) // (4 * floats), num_nodes), op=MPI.MIN)
    if cache.bytes or cache.fraction or cache.rows != AUTO:
        wanted = (
            cache.bytes // (4 * floats)
            if cache.bytes
            else int(cache.fraction * num_nodes)
            if cache.fraction
            else cache.rows
        )
        if min(wanted, num_nodes) > limit:
            report.append(f"device cache: {wanted:,} rows are wanted, but a device has room for {limit:,}")
        return min(wanted, num_nodes, limit)
    staleness = config.staleness
    saved = traffic.cold_bytes(
        hotness, is_far, layout, staleness.max_steps, staleness.max_missed_updates, config.aggregation.window_steps
    )
    touches = hotness.access_rates.astype(np.float64)
    if device.type == "cuda":  # a cold row goes to the GPU, and its gradient comes back
        saved += touches * 2 * layout.record_bytes
    world.Allreduce(MPI.IN_PLACE, saved)
    world.Allreduce(MPI.IN_PLACE, touches)
    num_hot = traffic.choose_num_hot(saved, touches, hotness.update_rates, layout, limit)
    if num_hot == 0:
        report.append("device cache: off, since replicas would move more bytes over the network than they save")
    return world.bcast(num_hot)


def _free_bytes(communicator: Communicator, device: torch.device) -> int:
    """What the cache of this rank may take of its device."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        ranks_per_device = -(-communicator.host.Get_size() // torch.cuda.device_count())
        return int(free * DEVICE_SHARE) // ranks_per_device
    return int(psutil.virtual_memory().available * DEVICE_SHARE) // communicator.host.Get_size()
