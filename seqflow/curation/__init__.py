"""Curation: which rows of a source are left out as duplicates, near duplicates, or rows of evaluation sets."""

from seqflow.curation.rules import Decontaminate, Deduplicate, NearDuplicates, Rule

__all__ = ["Decontaminate", "Deduplicate", "NearDuplicates", "Rule"]
