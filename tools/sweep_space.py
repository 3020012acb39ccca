"""The settings that a sweep chooses, and their values."""

import math

DEFAULT_SPACE = ("learning_rate=0.0002..0.006", "entropy_coef=0.0003..0.03", "value_coef=0.03..1",
                 "lambda=0.8..1", "discount=0.99..0.9995", "reuse=1|2|4")


class SweepError(Exception):
    """What is wrong, where, and what to do: one sentence. `status` is that of the program that
    failed, None where none did."""

    status = None


def key_of(option):
    """--learning-rate as learning_rate."""
    return option.lstrip("-").replace("-", "_")


class Range:
    """One setting's values: `least..most`, on a logarithmic scale where the ends are ten times
    apart or more, or a choice `a|b|c`. Whole numbers stay whole."""

    def __init__(self, text):
        self.text = text
        self.key, found, values = text.partition("=")
        self.key = key_of(self.key.strip())
        if not found or not self.key or not values:
            raise SweepError(f'--tune "{text}": expected KEY=LEAST..MOST or KEY=A|B|C')
        self.choices = values.split("|") if ".." not in values else None
        if self.choices is not None:
            return
        ends = values.split("..")
        try:
            self.whole = all(end.strip().lstrip("-").isdigit() for end in ends)
            self.least, self.most = (int(e) if self.whole else float(e) for e in ends)
        except ValueError:
            raise SweepError(f'--tune "{text}": {values} is not LEAST..MOST, two numbers') from None
        if not (math.isfinite(self.least) and math.isfinite(self.most) and self.least < self.most):
            raise SweepError(f'--tune "{text}": the first number must be the smaller one')
        self.log = self.least > 0 and self.most >= 10 * self.least

    def suggest(self, trial):
        """The value that the sampler chose, as an option's text."""
        if self.choices is not None:
            return trial.suggest_categorical(self.key, self.choices)
        if self.whole:
            return str(trial.suggest_int(self.key, self.least, self.most, log=self.log))
        return f"{trial.suggest_float(self.key, self.least, self.most, log=self.log):.4g}"


def value_of(key, up_options):
    """What up's options give a key, the last of them; None where they do not."""
    value = None
    for at, word in enumerate(up_options):
        option, equals, behind = word.partition("=")
        if option.startswith("--") and key_of(option) == key:
            value = behind if equals else " ".join(up_options[at + 1:at + 2])
    return value


def space_of(texts, up_options=()):
    """The ranges of --tune, by default those of V-trace's settings that are not among up's options.
    SweepError for two of a key, one that is among them, or the default ones beside another
    algorithm."""
    fixed = {key_of(word.partition("=")[0]) for word in up_options if word.startswith("--")}
    ranges = [Range(text) for text in (texts or DEFAULT_SPACE)]
    if not texts:
        algorithm = value_of("algo", up_options)
        if algorithm not in (None, "vtrace"):
            raise SweepError(f"--algo {algorithm} after --, but the default ranges are V-trace's: "
                             f"name those of {algorithm} by --tune KEY=LEAST..MOST")
        ranges = [one for one in ranges if one.key not in fixed]
    keys = [one.key for one in ranges]
    for key in keys:
        if keys.count(key) > 1:
            raise SweepError(f"--tune {key} is given twice: give one range")
        if key in fixed:
            raise SweepError(f"--{key.replace('_', '-')} after -- is what --tune {key} chooses: "
                             "leave one out")
    if not keys:
        raise SweepError("every setting is given after --: name one to look for by --tune")
    return ranges
