"""Vocabulary: a mapping of keys to ids, built from columns, saved in files, and used as a constant in nets."""

from seqflow.vocabulary.vocabulary import Vocabulary

__all__ = ["Vocabulary"]
