import numpy as np

from fedelect.equations.scores import linear_scores, predicted_classes


def test_scores_are_weights_times_inputs_plus_the_bias_in_the_last_row() -> None:
    model = np.array([[1.0, 0.0], [0.0, 2.0], [10.0, 20.0]])
    assert linear_scores(model, np.array([[3.0, 4.0]])).tolist() == [[13.0, 28.0]]


def test_the_highest_score_wins_and_the_lowest_class_among_equals() -> None:
    assert predicted_classes(np.array([[0.0, 2.0, 1.0], [5.0, 5.0, 5.0]])).tolist() == [1, 0]
