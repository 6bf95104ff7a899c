"""The seed catalogue: 82 real competitions as public facts and Structural DNA; 60 of them are seeds."""

from sandmle.seeds.reader import catalogue, load_record, load_seed, seed_ids

__all__ = ["catalogue", "load_record", "load_seed", "seed_ids"]
