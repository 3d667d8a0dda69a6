// Layers that tag sequences: a linear-chain conditional random field (Lafferty, McCallum, Pereira
// 2001), and scores of chunks. Sequences are ragged or, with `length`, padded to one length. Errors
// of all layers: layers.h.
//
// A sequence of tags y has the score start[y_0] + the emissions of its tags + step[y_(k-1), y_k]
// for each pair of neighbours + stop[y_last]. Its probability is exp(score), divided by the sum
// over all sequences of tags. The parameter has start in row 0, stop in row 1 and the steps from
// tag i in row i + 2: [tags + 2, tags].
//
//   const Variable loss = layers::LinearChainCrf(emission, tags, {.param_attr = {.name = "crf"}});
//   const Variable path = layers::CrfDecoding(emission, {.param_attr = {.name = "crf"}});
#pragma once

#include <cstdint>
#include <source_location>
#include <string>
#include <vector>

#include "framework/builder/layers.h"
#include "framework/builder/param_attr.h"
#include "framework/builder/variable.h"

namespace skiff::layers {

struct LinearChainCrfOptions {
  // [sequences] or [sequences, 1], int64: the rows of each padded sequence that count. Undefined:
  // the emissions and tags are ragged.
  Variable length = {};
  ParamAttr param_attr = {};  // of the transitions; the default initializer is Xavier
  std::string name = {};
};
// The negative log-likelihood of each sequence of tags, [sequences, 1]; 0 for a sequence without
// rows. The emissions are [rows, tags], or with `length` [sequences, rows, tags]; `tags` are int64,
// [rows, 1] or with `length` [sequences, rows]. Neither large scores nor long sequences overflow. A
// tag outside [0, tags), or a length that a sequence can't have, is an Error (kOutOfRange) of the
// run.
Variable LinearChainCrf(const Variable& emission, const Variable& tags,
                        const LinearChainCrfOptions& options = {}, Site site = Site::current());

struct CrfDecodingOptions {
  Variable length = {};  // as in LinearChainCrfOptions
  // Tags to compare with, like those of LinearChainCrf. Undefined: the result is the tags.
  Variable tags = {};
  ParamAttr param_attr = {};  // that of LinearChainCrf: its name, or `shared`
};
// The most likely tags of each sequence, int64 [rows, 1], ragged; with `length` [sequences, rows],
// and 0 behind a sequence. If there are tags to compare with, 1 where they are the most likely
// ones, else 0. A name that no parameter of the program has yet makes a new parameter, for weights
// that are loaded later. Throws an Error (kInvalidArgument) if param_attr has no name.
Variable CrfDecoding(const Variable& emission, const CrfDecodingOptions& options,
                     Site site = Site::current());

struct ChunkEvalOptions {
  // What the tags of a chunk's rows say. Tag type * positions + position is a row of a chunk of
  // this type; the last tag, types * positions, is outside of all chunks.
  //   IOB    0: its first row, 1: a further row
  //   IOE    0: a row before the last, 1: its last row
  //   IOBES  0: its first row, 1: a row between, 2: its last row, 3: its single row
  //   plain  no positions: rows of one type that follow each other are a chunk
  std::string scheme = "IOB";
  int64_t types = 0;                         // must be set: the number of types of chunks
  std::vector<int32_t> excluded_types = {};  // whose chunks don't count
  Variable length = {};                      // as in LinearChainCrfOptions
};
// All are [1]; the shares are float32, the numbers int64. A batch's numbers can be added to those
// of others, its shares can't.
struct ChunkScores {
  Variable precision = {};  // correct / inferred; 0 if nothing is inferred
  Variable recall = {};     // correct / labelled; 0 if nothing is labelled
  Variable f1 = {};        // 2 * precision * recall / (precision + recall); 0 if nothing is correct
  Variable inferred = {};  // the number of chunks in `inference`
  Variable labelled = {};  // in `tags`
  Variable correct = {};   // in both, with the same rows and type
};
// Compares chunks, such as the entities of a text. Inference and tags are int64, ragged [rows, 1]
// or with `length` [sequences, rows]; all outputs are computed on the host. A tag that the scheme
// hasn't is an Error (kOutOfRange) of the run.
ChunkScores ChunkEval(const Variable& inference, const Variable& tags,
                      const ChunkEvalOptions& options, Site site = Site::current());

}  // namespace skiff::layers
