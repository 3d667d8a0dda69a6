// What ERNIE is pre-trained on: the generated world, texts, or instances of token ids.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/text/vocabulary.h"
#include "framework/training/reader.h"
#include "models/ernie/ernie_options.h"

namespace skiff::models {

struct PretrainingDataOptions {
  // world (generated), text:FILES (a sentence a line, an empty line between documents), table:FILES
  // (a document in the last column of each line), labelled:FILES (a table with a label in the first
  // column of each line) or ernie_demo:FILE (instances of token ids). FILES are names with commas
  // between them.
  std::string data = "world";
  std::string vocabulary_file = {};  // empty: made from the texts
  int64_t vocabulary_size = 8000;    // of one that is made
  // Phrases to mask as a whole, with the masking "phrase" only; empty: those of the world, if any.
  std::string lexicon_file = {};
  std::string masking = "phrase";  // piece, word or phrase
  // next_sentence, reordering and distance, with commas between them, or none; auto: none for the
  // world, else next_sentence. Instances of token ids have labels of next_sentence only.
  std::string sentence_tasks = "auto";
  // The share of documents or instances to validate on: the last of each file; of a labelled one,
  // the last of each class. A made vocabulary doesn't know them.
  double held_back = 0.1;
  int64_t length = 64;       // L
  int64_t most_masked = 12;  // M
  int64_t world_documents = 2000;
  int64_t batch_size = 32;
  uint64_t seed = 1;
};

class PretrainingData {
 public:
  virtual ~PretrainingData() = default;

  virtual const text::Vocabulary& vocabulary() const = 0;
  virtual std::vector<SentenceTaskShape> sentence_tasks() const = 0;
  virtual int64_t sentences() const = 0;  // kinds of sentence ids
  virtual int64_t tasks() const = 0;      // kinds of task ids, from 0 on; 0: all are the same
  // In a few words, such as "1900 documents; 400 questions (the most frequent entity answers 3 %)".
  virtual std::string extent() const = 0;
  // Readers of instance.h's feeds. They read the data of this object.
  virtual std::unique_ptr<training::Reader> TrainReader() const = 0;
  virtual std::unique_ptr<training::Reader> ValidationReader() const = 0;
};

// Throws an Error (kInvalidArgument) for options that aren't in the lists, for instances without a
// vocabulary file, with another sentence task or longer than `length`, and for phrases to mask
// without a lexicon or the other way round; and what the readers of files and the sources of
// samples throw.
std::unique_ptr<PretrainingData> MakePretrainingData(const PretrainingDataOptions& options);

}  // namespace skiff::models
