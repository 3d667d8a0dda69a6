// The layers of the translation model: the part that training and decoding share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "framework/builder/control_flow.h"
#include "framework/builder/param_attr.h"
#include "framework/builder/variable.h"

namespace skiff::models {

struct Seq2SeqOptions {
  int64_t source_tokens = 0;  // sizes of the vocabularies; must be set
  int64_t target_tokens = 0;
  int64_t embedding = 64;
  int64_t hidden = 128;       // of the decoder, and of each direction of the encoder
  std::string cell = "gru";   // or lstm
  int64_t layers = 1;         // of the encoder
  bool bidirectional = true;  // a layer of the encoder also reads from the end to the start
  // bahdanau   Bahdanau, Cho, Bengio 2015: a score v · tanh(query + key), by the state before the
  //            step
  // luong      Luong, Pham, Manning 2015: a score state · key ("general"), by the state after it
  std::string attention = "bahdanau";
  bool input_feeding = false;    // of luong: a step also reads the vector by which the step before
                                 // chose its token
  bool tied_embeddings = false;  // scores by the products with the vectors of the target's tokens
  float dropout = 0.0f;          // of embeddings and of what a token is chosen by
  // In training, this share of each label's probability is spread over all tokens alike.
  float label_smoothing = 0.0f;
  // How the decoder runs in training. Both have the same parameters, so a model that was trained
  // with one can be trained on with the other.
  //
  // attention_decoder   one op for all steps, layers::AttentionDecoder; faster
  //
  // dynamic_rnn         a loop of ordinary layers; input_feeding always takes it, since the op has
  //                     no readout in its steps
  std::string decoder = "attention_decoder";
};

// The tables of the tokens' vectors, [tokens, embedding].
inline constexpr const char* kSourceTable = "source.table";
inline constexpr const char* kTargetTable = "target.table";

// The encoded source that the decoder attends to, a row for each source token.
struct Encoded {
  Variable states;  // [tokens, hidden], or twice as wide from two directions; ragged
  Variable keys;    // [tokens, hidden], ragged: the states' part of the attention scores
};

struct Decoded {
  Variables state;    // for the next step, [n, …] each
  Variables outputs;  // for Scores, [n, …] each
  Variable weights;   // [tokens], ragged: how much the step looked at each
};

// The ops of a step's attention: Fluid's, for models that are saved (PaddlePaddle runs the ops of
// bahdanau as well), or sequence_attention, which is faster. Parameters and results are the same.
enum class AttentionOps { kFluid, kFused };

// All parameters have names, so programs with the same network share the parameters.
class Seq2SeqNetwork {
 public:
  // Throws an Error (kInvalidArgument) for a size that CheckSizes refuses, another cell, attention
  // or decoder, input_feeding without luong, and a label_smoothing or dropout outside [0, 1).
  explicit Seq2SeqNetwork(const Seq2SeqOptions& options);

  Encoded Encode(const Variable& ids) const;

  // Returns the state before the first step, [sentences, …] each: from the last layer of the
  // encoder, where it has read all.
  Variables FirstState(const Encoded& encoded) const;

  // Returns the vectors of tokens of the target, [n, embedding].
  Variable Embed(const Variable& ids) const;

  // Looks at the source and reads a word. The state is that of the step before.
  Decoded Step(const Variable& word, const Variables& before, const Encoded& encoded,
               AttentionOps ops = AttentionOps::kFluid) const;

  // Does all steps on `words`, [rows, embedding] and ragged, from the state `first`. Returns the
  // outputs for Scores, [rows, …] each.
  Variables Steps(const Variable& words, const Variables& first, const Encoded& encoded) const;

  // Returns the scores of all tokens, [n, target_tokens]. One call may serve many steps.
  Variable Scores(const Variables& outputs, const Variable& word) const;

 private:
  struct Attended {
    Variable context;  // [n, the width of the encoder's states]
    Variable weights;
  };

  bool is_lstm() const { return options_.cell == "lstm"; }
  bool is_luong() const { return options_.attention == "luong"; }
  // The states of one direction of a layer.
  Variable EncodeDirection(const Variable& x, bool is_reverse, const std::string& name) const;
  Attended Attend(const Variable& state, const Encoded& encoded, AttentionOps ops) const;
  Variables StepsByOp(const Variable& words, const Variables& first, const Encoded& encoded) const;
  Variables StepsByLayers(const Variable& words, const Variables& first,
                          const Encoded& encoded) const;
  // Returns the cell's state after `before`.
  Variables Cell(const Variable& x, const Variables& before) const;
  // Returns what a token is chosen by, [n, embedding].
  Variable Readout(const Variables& parts) const;
  bool GivesScores(std::string_view table) const {
    return options_.tied_embeddings && table == kTargetTable;
  }
  // Vectors begin with a variance of 1, as those of PyTorch's nn.Embedding. Xavier's deviation,
  // sqrt(2 / (rows + width)), is meant for products with a matrix of all rows; a lookup reads a
  // single row, and with vectors that are almost 0 a training learns slowly (docs/seq2seq.md). A
  // table that also gives the scores has the deviation embedding^-0.5, so that the scores begin
  // with a variance of 1 at most; its vectors are multiplied by embedding^0.5 where they are looked
  // up (Vaswani et al., "Attention Is All You Need", 2017, 3.4).
  ParamAttr TableAttr(const char* name) const;
  Variable Table(const Variable& ids, int64_t rows, const char* name) const;
  Variable Dropped(const Variable& x) const;

  const Seq2SeqOptions options_;
};

}  // namespace skiff::models
