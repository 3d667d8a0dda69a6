// Trains a translation model. `train --help` lists the flags.

#include <gflags/gflags.h>

#include <cstdint>
#include <iterator>
#include <memory>

#include "framework/base/str_cat.h"
#include "framework/text/token_vocabulary.h"
#include "models/common/train_main.h"
#include "models/seq2seq/network_file.h"
#include "models/seq2seq/seq2seq.h"
#include "models/seq2seq/translation_data.h"

DEFINE_string(data, "dates",
              "dates (generated: dates written in many ways, and their form in ISO 8601); a file "
              "with a sentence and its translation on each line, separated by a tab; or two files, "
              "SOURCE,TARGET, with a sentence on each line. Files may be compressed with gzip.");
DEFINE_string(validation, "", "Pairs to validate on, as --data; empty: a share of --data.");
DEFINE_double(held_back, 0.1, "The share of --data to validate on, without --validation: its end.");
DEFINE_string(
    tokens, "characters",
    "What a token is: characters, words, or bpe: pieces of words, which byte-pair encoding "
    "learns from --data.");
DEFINE_int64(vocabulary_size, 8000, "At most so many tokens on each side.");
DEFINE_int64(least_count, 1,
             "A token of the vocabulary is there at least so often; with --tokens=bpe only 1.");
DEFINE_int64(longest, 100, "Pairs with more tokens on a side are left out.");
DEFINE_int64(most_tokens, 4096, "Of both sides of a batch, which then has fewer pairs.");
DEFINE_int64(embedding, 64, "Width of the vectors of tokens.");
DEFINE_int64(hidden, 128,
             "Width of the state of the decoder and of each direction of the encoder.");
DEFINE_string(cell, "gru", "gru or lstm.");
DEFINE_int64(layers, 1, "Of the encoder.");
DEFINE_bool(bidirectional, true, "Each layer of the encoder also reads from the end to the start.");
DEFINE_string(attention, "bahdanau",
              "bahdanau (additive, by the state before a step) or luong (a product, by the state "
              "after it).");
DEFINE_bool(input_feeding, false,
            "With --attention=luong: a step also reads what the one before chose its token by.");
DEFINE_bool(tied_embeddings, false,
            "The table of the target's tokens also gives the scores of the tokens.");
DEFINE_double(label_smoothing, 0,
              "The share of each label that all tokens get alike, in training only; below 1.");
DEFINE_string(
    decoder, "attention_decoder",
    "How the decoder is trained: attention_decoder, one op for all steps, or dynamic_rnn, a "
    "loop of ordinary layers, which --input_feeding always takes. The model is the same.");
DEFINE_double(dropout, 0, "Of the vectors of tokens, and of what a token is chosen by.");

namespace {

skiff::models::TrainingTask MakeTask(const skiff::models::TaskOptions& task_options) {
  const auto data = std::make_shared<const skiff::models::TranslationData>(
      skiff::models::TranslationDataOptions{.data = FLAGS_data,
                                            .validation = FLAGS_validation,
                                            .held_back = FLAGS_held_back,
                                            .tokens = FLAGS_tokens,
                                            .vocabulary_size = FLAGS_vocabulary_size,
                                            .least_count = FLAGS_least_count,
                                            .longest = FLAGS_longest,
                                            .batch_size = task_options.batch_size,
                                            .most_tokens = FLAGS_most_tokens,
                                            .seed = task_options.seed});
  const skiff::models::Seq2SeqOptions network{
      .source_tokens = data->source().size(),
      .target_tokens = data->target().size(),
      .embedding = FLAGS_embedding,
      .hidden = FLAGS_hidden,
      .cell = FLAGS_cell,
      .layers = FLAGS_layers,
      .bidirectional = FLAGS_bidirectional,
      .attention = FLAGS_attention,
      .input_feeding = FLAGS_input_feeding,
      .tied_embeddings = FLAGS_tied_embeddings,
      .dropout = static_cast<float>(FLAGS_dropout),
      .label_smoothing = static_cast<float>(FLAGS_label_smoothing),
      .decoder = FLAGS_decoder};
  skiff::models::TrainingTask task =
      skiff::models::TaskOn(data,
                            skiff::StrCat("Translation (", FLAGS_cell, " ", FLAGS_hidden,
                                          ", attention of ", FLAGS_attention, ") of ", FLAGS_data),
                            "pairs");
  task.model_files = data->VocabularyFiles();
  // The tables of a checkpoint mean nothing beside other tokens, which another version of
  // SentencePiece may give for the same texts, and other texts for a checkpoint of an earlier
  // version, which doesn't have their contents. The name sorts behind the flags that change tokens,
  // which are then blamed first.
  const std::string vocabularies = skiff::text::VocabularyChecksum(data->source(), data->target());
  task.configuration = {{"vocabulary_tokens", vocabularies}};
  task.model_files.emplace(skiff::models::kNetworkFile,
                           skiff::models::NetworkText({network, vocabularies}));
  task.program = std::make_unique<skiff::training::TrainingProgram>(skiff::models::BuildSeq2Seq(
      network, task_options.OptimizationOver(*task.train), task_options.seed));
  return task;
}

}  // namespace

int main(int argc, char** argv) {
  return skiff::models::TrainMain(
      argc, argv,
      {.name = "seq2seq",
       .summary = "Trains an encoder and a decoder with attention to translate, without padding.",
       .flag_defaults = {{"optimizer", "adam"},
                         {"learning_rate", "2e-3"},
                         {"weight_decay", "0"},
                         {"clip_norm", "1"},
                         {"batch_size", "32"},
                         {"epochs", "3"}},
       .fixed_flags = {"attention", "bidirectional", "cell", "data", "dropout", "embedding",
                       "held_back", "hidden", "input_feeding", "label_smoothing", "layers",
                       "least_count", "longest", "most_tokens", "tied_embeddings", "tokens",
                       "validation", "vocabulary_size"},
       .make_task = MakeTask,
       .try_next = {"--attention=luong --input_feeding", "--data=SOURCE,TARGET --tokens=words"}});
}
