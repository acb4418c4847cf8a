"""From one sequence of tokens to another, token by token: an encoder, and a decoder that attends to it."""

import course_utils.quiet  # noqa: F401

import pytorch_lightning as pl
import torch
import torch.nn.functional as F
from torch import Tensor, nn, optim

from course_utils.decoder import BlockCache, TransformerDecoder
from course_utils.encoder import TransformerEncoder
from course_utils.learned_positions import LearnedPositions
from course_utils.schedule import CosineWarmupScheduler


def shift_right(target: Tensor, start_token: int) -> Tensor:
    """What the decoder is given while it is taught: the start token, and then the target without its last token.

    At position t the decoder then has seen the target up to t-1 and has to predict token t.

    Args:
        target: tokens [B, T].
        start_token: the token before the first.

    Returns:
        Tokens [B, T].
    """
    return torch.cat([torch.full_like(target[:, :1], start_token), target[:, :-1]], dim=1)


class SequenceToSequence(pl.LightningModule):
    """A Transformer as in the original paper, for tokens: encoder, decoder with cross-attention, and a classifier.

    Args:
        num_tokens: number C of different tokens; the decoder's start token is one more, number C.
        model_dim: width D inside the model; the feed-forward networks are twice as wide.
        num_heads: attention heads of each block; divides model_dim.
        num_layers: blocks of the encoder, and as many of the decoder.
        lr: highest learning rate.
        warmup: optimizer steps of warm-up.
        max_iters: optimizer steps after which the learning rate has reached zero.
        dropout: dropout inside the model.
        norm_first: pre-norm rather than post-norm blocks.
        max_len: longest sequence, on either side; positions are learned.

    Raises:
        ValueError: if a size is out of range.
    """

    def __init__(
        self,
        num_tokens: int,
        model_dim: int,
        num_heads: int,
        num_layers: int,
        lr: float,
        warmup: int,
        max_iters: int,
        dropout: float = 0.0,
        norm_first: bool = False,
        max_len: int = 64,
    ):
        super().__init__()
        if num_tokens < 1:
            raise ValueError(f"num_tokens must be at least 1, got {num_tokens}")
        self.save_hyperparameters()
        self.start_token = num_tokens
        self.embedding = nn.Embedding(num_tokens + 1, model_dim)
        self.positions = LearnedPositions(model_dim, max_len)
        block_args = {
            "input_dim": model_dim,
            "num_heads": num_heads,
            "dim_feedforward": 2 * model_dim,
            "dropout": dropout,
            "norm_first": norm_first,
        }
        self.encoder = TransformerEncoder(num_layers, **block_args)
        self.decoder = TransformerDecoder(num_layers, **block_args)
        self.output_net = nn.Linear(model_dim, num_tokens)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Predict each token of the target from the source and the tokens before it (teacher forcing).

        Args:
            source: tokens [B, Ts].
            target: tokens [B, T]; token t is used for the predictions after t only.

        Returns:
            Logits [B, T, num_tokens].
        """
        return self.decode(shift_right(target, self.start_token), self.encode(source))

    def encode(self, source: Tensor) -> Tensor:
        """The memory [B, Ts, D] that the decoder attends to, of tokens [B, Ts]."""
        return self.encoder(self._embed(source))

    def decode(self, shifted: Tensor, memory: Tensor, caches: list[BlockCache] | None = None) -> Tensor:
        """Logits [B, T, num_tokens] of what follows each token of `shifted` [B, T].

        With caches, `shifted` holds the tokens that are new since the last call.
        """
        first = 0 if caches is None else caches[0].tokens.length
        x = self.decoder(self._embed(shifted, first), memory, caches=caches)
        return self.output_net(x)

    @torch.no_grad()
    def generate(self, source: Tensor, length: int, *, use_cache: bool = True) -> tuple[Tensor, Tensor]:
        """Write the target token by token, each time the most likely one.

        Args:
            source: tokens [B, Ts].
            length: number T of tokens to write.
            use_cache: feed only the newest token and remember the keys and values of the others; else feed all
                tokens anew for each one. The result is the same.

        Returns:
            tokens [B, T] and their logits [B, T, num_tokens].
        """
        memory = self.encode(source)
        caches = self.decoder.new_caches() if use_cache else None
        tokens = source.new_full((len(source), 1), self.start_token)
        logits = []
        for _ in range(length):
            newest = self.decode(tokens[:, -1:] if use_cache else tokens, memory, caches)[:, -1]  # [B, num_tokens]
            tokens = torch.cat([tokens, newest.argmax(dim=-1, keepdim=True)], dim=1)
            logits.append(newest)
        return tokens[:, 1:], torch.stack(logits, dim=1)

    def get_attention_maps(self, source: Tensor, target: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """The decoder's weights under teacher forcing: on the target [B, H, T, T], on the source [B, H, T, Ts]."""
        shifted = self._embed(shift_right(target, self.start_token))
        return self.decoder.get_attention_maps(shifted, self.encode(source))

    def _embed(self, tokens: Tensor, first: int = 0) -> Tensor:
        """Embedded tokens [B, T, D] at the positions from `first` on."""
        return self.positions(self.embedding(tokens), first)

    def _calculate_loss(self, batch: tuple[Tensor, Tensor], mode: str) -> Tensor:
        source, target = batch
        logits = self(source, target)
        loss = F.cross_entropy(logits.flatten(0, 1), target.flatten())
        self.log(f"{mode}_loss", loss, batch_size=len(target))
        return loss

    def training_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> Tensor:
        """The cross-entropy of a batch under teacher forcing, in nats a token."""
        return self._calculate_loss(batch, "train")

    def validation_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> None:
        """Log val_loss under teacher forcing, and val_acc: the share of sequences written without a mistake."""
        self._calculate_loss(batch, "val")
        self._log_written(batch, "val")

    def test_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> None:
        """Log test_acc, the share of sequences written without a mistake."""
        self._log_written(batch, "test")

    def _log_written(self, batch: tuple[Tensor, Tensor], mode: str) -> None:
        source, target = batch
        written, _ = self.generate(source, target.size(1))
        accuracy = (written == target).all(dim=1).float().mean()
        self.log(f"{mode}_acc", accuracy, batch_size=len(target), prog_bar=mode == "val")

    def configure_optimizers(self):
        """Adam, with the schedule advanced after each optimizer step."""
        optimizer = optim.Adam(self.parameters(), lr=self.hparams.lr)
        scheduler = CosineWarmupScheduler(optimizer, warmup=self.hparams.warmup, max_iters=self.hparams.max_iters)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}
