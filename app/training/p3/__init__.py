"""P3's way of training (Gandhi and Iyer, OSDI 2021): the table is split by dimension, not by node. It may import what
app/training/ may, and the state that it trains; no other mode imports it but to choose it."""
