"""A mistake of one rank becomes one of all; a fault does not wait for the others."""

from __future__ import annotations

import pytest
from mpi4py import MPI

from glpilot.app.runtime.agreement import AgreedError, agreement
from glpilot.data.errors import UserError


class FakeRanks:
    """A communicator in which the other ranks' mistakes are known beforehand; this rank is the last."""

    def __init__(self, *others):
        self.others = list(others)

    def allgather(self, mistake):
        return [*self.others, mistake]

    def Get_size(self) -> int:
        return len(self.others) + 1


def test_without_mistakes_all_go_on():
    with agreement(FakeRanks(None, None)):
        pass


def test_a_mistake_of_this_rank_names_it():
    with pytest.raises(AgreedError, match=r"^part 2 is damaged \(rank 2\)$"), agreement(FakeRanks(None, None)):
        raise UserError("part 2 is damaged")


def test_a_mistake_of_another_rank_is_ours_too():
    others = FakeRanks(None, "part 1 is damaged", "later")
    with pytest.raises(AgreedError, match=r"^part 1 is damaged \(rank 1\)$"), agreement(others):
        pass


def test_a_mistake_of_all_ranks_names_none():
    others = FakeRanks("no such folder", "no such folder")
    with pytest.raises(AgreedError, match="^no such folder$"), agreement(others):
        raise UserError("no such folder")


def test_a_fault_is_not_agreed_on():
    class NeverAsked(FakeRanks):
        def allgather(self, mistake):
            raise AssertionError("a fault must not wait for other ranks")

    with pytest.raises(ZeroDivisionError), agreement(NeverAsked()):
        raise ZeroDivisionError


def test_agreement_on_one_real_rank():
    with pytest.raises(AgreedError, match="^wrong$"), agreement(MPI.COMM_SELF):
        raise UserError("wrong")
