"""Baselines that never see the model: what tells member secrets from others by their text alone.

A membership attack is evidence of memorisation only as far as it beats these, since members and
non-members may differ.
"""

import numpy as np

FOLDS = 5


def ngram_scores(secrets: list[str], member: np.ndarray, seed: int) -> np.ndarray:
    """Out-of-fold scores (M,) of a logistic regression on character 1- to 4-grams.

    Needs five secrets of each class.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline

    features = TfidfVectorizer(
        analyzer="char", ngram_range=(1, 4), lowercase=False, sublinear_tf=True
    )
    classifier = make_pipeline(features, LogisticRegression(C=10.0, max_iter=1000))
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    return cross_val_predict(classifier, secrets, member, cv=folds, method="decision_function")


def length_scores(secrets: list[str], member: np.ndarray, seed: int) -> np.ndarray:
    """Minus the number of characters (M,): short secrets are called members; nothing is fitted."""
    return -np.array([len(secret) for secret in secrets], dtype=np.float64)


BASELINES = {"ngram": ngram_scores, "length": length_scores}
