"""The Lightning module that both tasks extend: a Transformer encoder between two small networks."""

import course_utils.quiet  # noqa: F401

import pytorch_lightning as pl
import torch
from torch import Tensor, nn, optim

from course_utils.encoder import TransformerEncoder
from course_utils.positions import PositionalEncoding
from course_utils.schedule import CosineWarmupScheduler


class TransformerPredictor(pl.LightningModule):
    """Predict num_classes numbers for each token of a sequence or element of a set.

    A subclass says what a batch is and what the loss: it defines `training_step` and `validation_step`.

    Args:
        input_dim: width of the input features.
        model_dim: width D inside the Transformer; the feed-forward networks are twice as wide.
        num_classes: numbers to predict for each token.
        num_heads: attention heads of each block; divides model_dim.
        num_layers: number of encoder blocks.
        lr: highest learning rate.
        warmup: optimizer steps of warm-up, usually 50 to 500.
        max_iters: optimizer steps after which the learning rate has reached zero.
        dropout: dropout inside the model.
        input_dropout: dropout on the input features.
        norm_first: pre-norm rather than post-norm blocks.

    Raises:
        ValueError: if a size is out of range.
    """

    def __init__(
        self,
        input_dim: int,
        model_dim: int,
        num_classes: int,
        num_heads: int,
        num_layers: int,
        lr: float,
        warmup: int,
        max_iters: int,
        dropout: float = 0.0,
        input_dropout: float = 0.0,
        norm_first: bool = False,
    ):
        super().__init__()
        # Plain Python numbers (not NumPy's or a tensor), so that a checkpoint of them loads with weights_only=True.
        input_dim, model_dim, num_classes = int(input_dim), int(model_dim), int(num_classes)
        num_heads, num_layers, warmup, max_iters = int(num_heads), int(num_layers), int(warmup), int(max_iters)
        lr, dropout, input_dropout = float(lr), float(dropout), float(input_dropout)
        norm_first = bool(norm_first)
        plain = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        if min(input_dim, model_dim, num_classes) < 1:
            raise ValueError(f"sizes must be at least 1, got {input_dim=}, {model_dim=} and {num_classes=}")
        self.save_hyperparameters()
        self.hparams.update(plain)  # Lightning has looked into the frame of a subclass as well

        self.input_net = nn.Sequential(nn.Dropout(input_dropout), nn.Linear(input_dim, model_dim))
        self.positional_encoding = PositionalEncoding(d_model=model_dim)
        self.transformer = TransformerEncoder(
            num_layers=num_layers,
            input_dim=model_dim,
            num_heads=num_heads,
            dim_feedforward=2 * model_dim,
            dropout=dropout,
            norm_first=norm_first,
        )
        self.output_net = nn.Sequential(
            nn.Linear(model_dim, model_dim),
            nn.LayerNorm(model_dim),
            nn.ReLU(inplace=True),
            nn.Dropout(dropout),
            nn.Linear(model_dim, num_classes),
        )

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        add_positional_encoding: bool = True,
        *,
        token_mask: Tensor | None = None,
    ) -> Tensor:
        """Predict for each token.

        Args:
            x: input features [B, T, input_dim].
            mask: who may attend to whom, as in `MultiheadAttention.forward`.
            add_positional_encoding: False for a set, whose elements have no order.
            token_mask: [B, T], True where a real token stands.

        Returns:
            [B, T, num_classes].
        """
        x = self._embed(x, add_positional_encoding)
        x = self.transformer(x, mask, token_mask=token_mask)
        return self.output_net(x)

    @torch.no_grad()
    def get_attention_maps(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        add_positional_encoding: bool = True,
        *,
        token_mask: Tensor | None = None,
    ) -> list[Tensor]:
        """The attention weights [B, H, T, T] of each block for this input; the arguments are those of `forward`."""
        x = self._embed(x, add_positional_encoding)
        return self.transformer.get_attention_maps(x, mask, token_mask=token_mask)

    def _embed(self, x: Tensor, add_positional_encoding: bool) -> Tensor:
        width = self.input_net[1].in_features
        if x.dim() != 3 or x.size(-1) != width:
            raise ValueError(f"x must be [batch, length, input_dim={width}], got {list(x.shape)}")
        x = self.input_net(x)
        return self.positional_encoding(x) if add_positional_encoding else x

    def is_noted(self, mode: str) -> bool:
        """Whether the metrics of this batch are to be logged: all of an evaluation, those of training where written.

        Lightning would take each of them, at a tenth of a small model's step, and write one in `log_every_n_steps`.
        """
        trainer = self._trainer  # None outside of training; the public name would raise
        return mode != "train" or trainer is None or (trainer.global_step + 1) % trainer.log_every_n_steps == 0

    def configure_optimizers(self):
        """Adam, with the schedule advanced after each optimizer step."""
        optimizer = optim.Adam(self.parameters(), lr=self.hparams.lr)
        scheduler = CosineWarmupScheduler(optimizer, warmup=self.hparams.warmup, max_iters=self.hparams.max_iters)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}

    def training_step(self, batch, batch_idx):
        """The loss of a batch; for the subclass to define."""
        raise NotImplementedError(f"{type(self).__name__} must define training_step")

    def validation_step(self, batch, batch_idx):
        """Log the metrics of a batch; for the subclass to define."""
        raise NotImplementedError(f"{type(self).__name__} must define validation_step")

    def test_step(self, batch, batch_idx):
        """Log the metrics of a batch; for the subclass to define."""
        raise NotImplementedError(f"{type(self).__name__} must define test_step")
