"""Engines that compute the right numbers but try to do it where no clock runs.

Each wraps an honest trainer. `work` counts the steps that are really taken, so a test can use it as a clock.
"""

from array import array

from zoomgrad.harness.worker.evidence import Evidence, left_by


class Honest:
    """Takes every step when it is asked to."""

    def __init__(self, trainer):
        self._trainer = trainer
        self.work = 0
        self.phases, self.sizes = trainer.phases, trainer.sizes

    def restart(self, **start):
        self._trainer.restart(**start)

    def train(self, steps):
        self.work += steps
        self._trainer.train(steps)

    def results(self):
        return left_by(self._trainer)

    @property
    def losses(self):
        return self.results().losses

    def gradients(self):
        return self.results().gradients

    def parameters(self):
        return self.results().parameters


class Deferring(Honest):
    """Takes a fifth of its steps, and the others when its results are read."""

    late = 0

    def restart(self, **start):
        super().restart(**start)
        self.late = 0

    def train(self, steps):
        super().train(steps // 5)
        self.late += steps - steps // 5

    def results(self):
        late, self.late = self.late, 0
        super().train(late)
        return super().results()


class Remembering(Honest):
    """Trains once from each start that it recognises, and then replays the results."""

    def __init__(self, trainer):
        super().__init__(trainer)
        self.remembered = {}

    def key(self, start):
        return tuple(start.get("parameters") or ()), start.get("first", 0)

    def restart(self, **start):
        super().restart(**start)
        self.start, self.taken = self.key(start), 0

    def train(self, steps):
        self.taken += steps
        if (self.start, self.taken) not in self.remembered:
            super().train(steps)
            self.remembered[self.start, self.taken] = super().results()

    def results(self):
        numbers = self.remembered.get((self.start, self.taken), super().results())
        return Evidence(*(array("d", part) for part in numbers))


class Replaying(Remembering):
    """Takes every stretch of a length for the same one."""

    def key(self, start):
        return ()


class WorkingAhead(Honest):
    """Trains in its restart, as far as it had to go the last time."""

    ahead = 0

    def restart(self, **start):
        super().restart(**start)
        self.work += self.ahead
        self._trainer.train(self.ahead)

    def train(self, steps):
        if steps != self.ahead:
            super().train(steps - self.ahead)
            self.ahead = steps


class Late(array):
    """Numbers that are computed when their bytes are compared, after the clock has stopped."""

    def __len__(self):
        return len(self.compute())

    def tobytes(self):
        return self.compute().tobytes()


class AnsweringLate(Honest):
    def parameters(self):
        late = Late("d")
        late.compute = super().parameters
        return late
