// The demo data of ERNIE: instances for pre-training that are ids already, plain or compressed with
// gzip.
//
// A line is an instance, five fields with semicolons between them, each of which has numbers with
// blanks between them:
//   token_ids; sentence_ids; position_ids; seg_labels; next_sentence_label
// A seg_label is 0 for the first piece of a word, 1 inside a word, and -1 for [CLS] and [SEP]: what
// is masked together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/text/instance.h"
#include "framework/text/vocabulary.h"

namespace skiff::models {

// Throws Error: kNotFound, kIo, kDataLoss as ReadTextFile; kDataLoss with path and line for another
// number of fields, fields without numbers, ids outside the vocabulary, sentence ids other than 0
// and 1, positions that don't count from 0, seg_labels that don't fit the tokens, empty lists,
// lists of different lengths, and an empty file.
std::vector<text::Instance> ReadErnieDemo(const std::string& path,
                                          const text::Vocabulary& vocabulary);

}  // namespace skiff::models
