"""The classifier of known classes: its arithmetic, that it learns, and the rule that goes with it."""

import numpy as np
import pytest
import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from course_utils.anomaly import AnomalyPredictor
from course_utils.class_evidence import ClassEvidence
from course_utils.rules import posterior_rule

SETTINGS = {"input_dim": 8, "model_dim": 16, "num_classes": 1, "num_heads": 2, "num_layers": 1, "lr": 1e-3}
SETTINGS |= {"warmup": 0, "max_iters": 10}


def clusters(classes: int = 5, each: int = 120, width: int = 8, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Features that are not negative, whose square roots lie around one centre for each class."""
    generator = torch.Generator().manual_seed(seed)
    centres = 1 + 2 * torch.rand(classes, width, generator=torch.Generator().manual_seed(1))
    labels = torch.arange(classes).repeat_interleave(each)
    roots = centres[labels] + 0.25 * torch.randn(len(labels), width, generator=generator)
    return roots.clamp(min=0) ** 2, labels


def test_its_arithmetic_is_that_of_a_linear_discriminant_on_standardised_square_roots():
    features, labels = clusters()
    roots = features.double().sqrt()
    mean, scale = roots.mean(0), roots.std(0)
    reference = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.5).fit((roots - mean) / scale, labels)
    evidence = ClassEvidence(8, 5, hidden=0).double().eval()
    evidence.mean.copy_(mean)
    evidence.scale.copy_(scale)
    evidence.linear.weight.copy_(torch.from_numpy(reference.coef_))
    evidence.linear.bias.copy_(torch.from_numpy(reference.intercept_))
    expected = reference.predict_log_proba((roots - mean) / scale)
    np.testing.assert_allclose(evidence(features.double()).numpy(), expected, rtol=1e-6, atol=1e-8)


def test_it_learns_the_classes_and_repeats():
    features, labels = clusters(each=600)
    new_features, _ = clusters(each=600, seed=7)
    learnt = [ClassEvidence(8, 5).eval() for _ in range(2)]
    before = torch.get_rng_state()
    for evidence in learnt:
        evidence.fit(features, labels, dropout=0.1, seed=3)
    assert torch.equal(torch.get_rng_state(), before)
    assert (learnt[0](new_features).argmax(-1) == labels).float().mean() > 0.8  # guessing: 0.2
    assert torch.equal(learnt[0](new_features), learnt[1](new_features))
    assert not any(parameter.requires_grad for parameter in learnt[0].parameters())  # no optimizer moves them


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"labels must be 0 to 4, got 0 to 5"):
        ClassEvidence(8, 5).fit(torch.rand(6, 8), torch.arange(6))
    with pytest.raises(ValueError, match=r"input_dim=8\], got \[2, 9\]"):
        ClassEvidence(8, 5)(torch.rand(2, 9))
    with pytest.raises(ValueError, match="known_classes=0"):
        AnomalyPredictor(**SETTINGS).learn_classes(*clusters())


def test_the_posterior_rule_is_bayes_rule_written_out():
    generator = torch.Generator().manual_seed(0)
    p = torch.rand(3, 4, 5, generator=generator, dtype=torch.float64).softmax(-1)  # [B, T, C]
    likelihood = torch.zeros(3, 4, dtype=torch.float64)
    for odd in range(4):
        for c in range(5):
            factors = [1 - p[:, image, c] if image == odd else p[:, image, c] for image in range(4)]
            likelihood[:, odd] += torch.stack(factors).prod(dim=0)
    expected = likelihood / likelihood.sum(dim=1, keepdim=True)
    torch.testing.assert_close(posterior_rule(p.log()).softmax(dim=-1), expected)


def test_the_posterior_rule_leaves_out_what_is_no_image_and_stays_finite_for_a_certain_one():
    log_p = torch.randn(2, 6, 5, generator=torch.Generator().manual_seed(0)).mul(30).log_softmax(-1)
    assert posterior_rule(log_p).isfinite().all()
    real = torch.tensor([True] * 4 + [False] * 2).expand(2, 6)
    torch.testing.assert_close(posterior_rule(log_p, real)[:, :4], posterior_rule(log_p[:, :4]))
    assert (posterior_rule(log_p, real)[:, 4:] < -1e30).all()


class TestPredictor:
    def test_without_known_classes_the_state_dict_is_the_published_one(self):
        assert AnomalyPredictor(**SETTINGS).state_dict().keys() == {
            name for name in AnomalyPredictor(**SETTINGS, known_classes=5).state_dict() if not is_of_the_classes(name)
        }

    def test_hyper_parameters_are_plain_types(self):
        model = AnomalyPredictor(**{name: np.float64(value) for name, value in SETTINGS.items()}, known_classes=5.0)
        assert {type(value) for value in model.hparams.values()} == {int, float, bool}
        assert model.hparams.known_classes == 5

    def test_a_new_one_scores_by_the_rule(self):
        model = AnomalyPredictor(**SETTINGS, known_classes=5, input_dropout=0.2).eval()
        features, labels = clusters()
        model.learn_classes(features, labels)
        sets = features[torch.randint(len(features), (3, 6), generator=torch.Generator().manual_seed(0))]
        scores = model(sets, add_positional_encoding=False)
        assert scores.shape == (3, 6, 1)
        torch.testing.assert_close(scores.squeeze(-1), posterior_rule(model.class_evidence(sets)))

    def test_a_trained_one_does_not_care_about_order_and_shows_its_attention(self):
        model = trained_a_little()
        sets = 4 * torch.rand(3, 6, 8, generator=torch.Generator().manual_seed(0))
        order = torch.tensor([3, 1, 0, 5, 4, 2])
        scores = model(sets, add_positional_encoding=False)
        torch.testing.assert_close(model(sets[:, order], add_positional_encoding=False), scores[:, order])
        (maps,) = model.get_attention_maps(sets, add_positional_encoding=False)
        assert maps.shape == (3, 2, 6, 6)

    def test_padding_changes_nothing(self):
        model = trained_a_little()
        sets = 4 * torch.rand(3, 6, 8, generator=torch.Generator().manual_seed(0))
        real = torch.tensor([True] * 4 + [False] * 2).expand(3, 6)
        padded = model(sets, add_positional_encoding=False, token_mask=real)
        torch.testing.assert_close(padded[:, :4], model(sets[:, :4], add_positional_encoding=False))


def is_of_the_classes(name: str) -> bool:
    return name.startswith("class_evidence.") or name == "rule_weight"


def trained_a_little() -> AnomalyPredictor:
    """A model whose Transformer does not add zero."""
    torch.manual_seed(0)
    model = AnomalyPredictor(**SETTINGS, known_classes=5).eval()
    model.learn_classes(*clusters())
    torch.nn.init.normal_(model.output_net[-1].weight)
    return model
