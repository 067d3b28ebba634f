"""Vocabulary: ids for keys, made from columns, kept in files, and used as a constant of nets."""

from seqflow.vocabulary.vocabulary import Vocabulary

__all__ = ["Vocabulary"]
