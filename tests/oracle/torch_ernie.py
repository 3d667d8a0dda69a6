"""ERNIE made of PyTorch's own modules, and its parameters by the names of Skiff's (models/ernie). Needs torch."""
import numpy as np
import torch
from torch import nn

CLASSES = 2


def in_float32(number):
    """Attributes of Skiff's ops have 32 bits, whatever the tensors have."""
    return float(np.float32(number))


EPSILON = in_float32(1e-5)


class Ernie(nn.Module):
    """Without dropout. `config` is that of a saved model."""

    def __init__(self, config):
        super().__init__()
        hidden = config["hidden_size"]
        self.words = nn.Embedding(config["vocab_size"], hidden)
        self.positions = nn.Embedding(config["max_position_embeddings"], hidden)
        self.sentences = nn.Embedding(config["type_vocab_size"], hidden)
        self.norm = nn.LayerNorm(hidden, EPSILON)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(hidden, config["num_attention_heads"], config["intermediate_size"],
                                       dropout=0.0, activation=config["hidden_act"], layer_norm_eps=EPSILON,
                                       batch_first=True)
            for _ in range(config["num_hidden_layers"]))
        self.transform = nn.Linear(hidden, hidden)
        self.activation = getattr(nn.functional, config["hidden_act"])
        self.transform_norm = nn.LayerNorm(hidden, EPSILON)
        self.word_bias = nn.Parameter(torch.zeros(config["vocab_size"]))
        self.pooler = nn.Linear(hidden, hidden)
        self.next_sentence = nn.Linear(hidden, CLASSES)

    def forward(self, feeds):
        """(scores of words, scores of the next sentence)."""
        x = self.norm(self.words(feeds["token_ids"]) + self.positions(feeds["position_ids"]) +
                      self.sentences(feeds["sentence_ids"]))
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=feeds["input_mask"] == 0)
        chosen = x.flatten(0, 1)[feeds["masked_positions"].flatten()]
        words = self.transform_norm(self.activation(self.transform(chosen))) @ self.words.weight.T + self.word_bias
        return words, self.next_sentence(torch.tanh(self.pooler(x[:, 0])))


def _dense(weight, bias, name):
    """A Linear's parameters as Skiff has them: it multiplies x by the matrix, not by its transpose."""
    return {name + ".w_0": weight.T, name + ".b_0": bias}


def _linear(module, name):
    return _dense(module.weight, module.bias, name)


def _norm(module, name):
    return {name + "_layer_norm_scale": module.weight, name + "_layer_norm_bias": module.bias}


def _layer_parameters(layer, name):
    attention = layer.self_attn
    parameters = _linear(attention.out_proj, name + "_multi_head_att_output_fc")
    # PyTorch has the three matrices below each other.
    for kind, weight, bias in zip(("query", "key", "value"), attention.in_proj_weight.chunk(3),
                                  attention.in_proj_bias.chunk(3)):
        parameters |= _dense(weight, bias, "%s_multi_head_att_%s_fc" % (name, kind))
    return (parameters | _linear(layer.linear1, name + "_ffn_fc_0") | _linear(layer.linear2, name + "_ffn_fc_1") |
            _norm(layer.norm1, name + "_post_att") | _norm(layer.norm2, name + "_post_ffn"))


def skiff_parameters(model):
    """Views of the model's parameters by the names of Skiff's."""
    parameters = {"word_embedding": model.words.weight, "pos_embedding": model.positions.weight,
                  "sent_embedding": model.sentences.weight, "mask_lm_out_fc.b_0": model.word_bias}
    parameters |= _norm(model.norm, "pre_encoder") | _norm(model.transform_norm, "mask_lm_trans")
    for name, module in (("mask_lm_trans_fc", model.transform), ("pooled_fc", model.pooler),
                         ("next_sent_fc", model.next_sentence)):
        parameters |= _linear(module, name)
    for i, layer in enumerate(model.layers):
        parameters |= _layer_parameters(layer, "encoder_layer_%d" % i)
    return {name: tensor.detach() for name, tensor in parameters.items()}
