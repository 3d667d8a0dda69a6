// Translation models with one recurrent layer in the encoder and one in the decoder, as in
// published timings.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "skiff/skiff.h"

namespace skiff {

struct Seq2SeqWorkload {
  std::string name;
  std::string cell;   // "gru" or "lstm"
  std::string score;  // "additive" or "dot"
};

// Returns seq2seq_gru_bahdanau and seq2seq_lstm_luong.
const std::vector<Seq2SeqWorkload>& Seq2SeqWorkloads();

// The tokens of a sentence and of its translation.
struct PairLengths {
  int64_t source = 0;
  int64_t target = 0;
};

struct BuiltSeq2Seq {
  Variable loss;  // the mean per token
  std::vector<FeedList> batches;
};

// Appends the network to the default programs: 512 units, vectors of 512 numbers, vocabularies of
// 8,000. The decoder starts with the last state of the encoder, attends by the state before each
// step, and chooses a token by the state after it. Each batch is of the next batch_size pairs, of
// generated tokens; pairs that don't fill a batch are left out. `decoder` is "attention_decoder",
// the op, or "dynamic_rnn", a DynamicRnn of ordinary layers that computes the same; throws an Error
// (kInvalidArgument) for another, for fewer pairs than a batch has, and for empty sentences.
BuiltSeq2Seq BuildSeq2SeqWorkload(const Seq2SeqWorkload& workload, const std::string& decoder,
                                  int64_t batch_size, const std::vector<PairLengths>& pairs,
                                  uint64_t seed);

}  // namespace skiff
