"""Appendix A of the paper, slow and obvious: the peer of `gct synth`.

Prints one JSON object with the same keys as `gct synth --json`, as far as it knows them. It shares no code and no
random numbers with the program, so only statistics can agree.

    python reference/synthetic.py --encounters 2000 --seed 0
"""

import argparse
import json
import time

import numpy as np

CODES = 1000
D1, D2, M1 = 199, 133, 939


def pareto_row(rng, shape, zero=None, pin=None):
    weights = rng.pareto(shape, CODES)
    if zero is not None:
        weights[zero] = 0.0
    if pin is not None:
        column, probability = pin
        weights[column] = 0.0
        weights[column] = weights.sum() * probability / (1.0 - probability)
    return weights / weights.sum()


def continuation(rng, mean, sd, size=None):
    p = np.maximum(rng.normal(mean, sd, size), 0.0)
    return np.where(p > 0.99, 0.5, p)


class World:
    def __init__(self, seed, p_d1):
        self.rng = rng = np.random.default_rng(seed)
        self.p_d = pareto_row(rng, 2.0, pin=(D1, p_d1))
        self.p_dd = [pareto_row(rng, 1.5, zero=d, pin=(D2, 0.33) if d == D1 else None) for d in range(CODES)]
        pins = {D1: (M1, 0.2), D2: (M1, 0.8)}
        self.p_md = [pareto_row(rng, 1.5, pin=pins.get(d)) for d in range(CODES)]
        self.p_rmd = {}  # rows appear when first needed: all of them would be 8 GB
        self.a = continuation(rng, 0.5, 0.1, CODES)
        self.b = continuation(rng, 0.5, 0.25, CODES)
        self.c = {}
        self.a[D1], self.b[D1], self.b[D2] = 0.8, 0.5, 0.5

    def draw(self):
        """Diagnoses, (diagnosis, treatment) edges and (treatment, lab) edges of one encounter."""
        rng, drawn = self.rng, []
        while len(drawn) < 2 or rng.random() < 0.5:
            d = rng.choice(CODES, p=self.p_d)
            drawn.append(d)
            while rng.random() < self.a[d]:
                d = rng.choice(CODES, p=self.p_dd[d])
                drawn.append(d)
        diagnoses = set(drawn)
        causes, results = set(), set()
        for d in diagnoses:
            while rng.random() < self.b[d]:
                m = rng.choice(CODES, p=self.p_md[d])
                if (d, m) in causes:
                    continue
                causes.add((d, m))
                if (d, m) not in self.c:
                    self.c[d, m] = continuation(rng, 0.5, 0.25)
                    self.p_rmd[d, m] = pareto_row(rng, 1.5)
                while rng.random() < self.c[d, m]:
                    results.add((m, rng.choice(CODES, p=self.p_rmd[d, m])))
        return diagnoses, causes, results


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--encounters", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--p-d1", type=float, default=0.055)
    args = parser.parse_args()

    start, world, raw, kept = time.time(), World(args.seed, args.p_d1), 0, []
    while len(kept) < args.encounters:
        diagnoses, causes, results = world.draw()
        raw += 1
        sizes = len(diagnoses), len({m for _, m in causes}), len({r for _, r in results})
        if all(5 <= size <= 50 for size in sizes):
            kept.append((*sizes, (D1, M1) in causes, (D2, M1) in causes))
    means = np.mean(np.array(kept, dtype=float), axis=0).tolist()
    print(json.dumps({
        "encounters": len(kept),
        "raw_encounters": raw,
        "diagnoses_per_encounter": means[0],
        "treatments_per_encounter": means[1],
        "labs_per_encounter": means[2],
        "label_prevalence": {"d1_m1": means[3], "d2_m1": means[4]},
        "seconds": time.time() - start,
    }))


if __name__ == "__main__":
    main()
