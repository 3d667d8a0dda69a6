// Makes a vocabulary of lines, learns pieces of words, reads a batch of each, and prints them.
#include <skiff/data.h>
#include <skiff/skiff.h>

#include <iostream>
#include <string>
#include <vector>

using namespace skiff;

namespace {

const std::vector<std::string> kLines = {"the cat sat on the mat", "the dog sat on the log"};

void Print(const training::Batch& batch, const char* feed) {
  std::cout << feed << ":";
  for (const int64_t number : batch.feed(feed).ToVector<int64_t>()) std::cout << " " << number;
  std::cout << "\n";
}

void ReadLabelledLines() {
  text::WordCounts words;
  for (const std::string& line : kLines) text::CountWords(line, {}, &words);
  const text::Vocabulary vocabulary = text::BuildVocabulary(words, {.size = 100});
  const text::Tokenizer tokenizer(&vocabulary);
  std::vector<text::LabelledText> texts;
  for (const std::string& line : kLines) {
    texts.push_back({.label = std::ssize(texts), .text = line});
  }
  const text::ClassificationSource source(tokenizer, texts, {.length = 8});
  training::SampleReader reader(&source, {.batch_size = 2});
  training::Batch batch;
  reader.Next(&batch);
  for (const std::string& token : tokenizer.Tokens("The CAT.")) std::cout << token << " ";
  std::cout << "\n";
  Print(batch, text::kPositionIds);
  Print(batch, text::kLabel);
}

void ReadPairsOfPieces() {
  const auto vocabulary = text::TokenVocabulary::Of(kLines, text::TokenKind::kPiece, 20, 1);
  const text::TokenPairs pairs = {.sources = {vocabulary.Encode(kLines[0])},
                                  .targets = {vocabulary.Encode(kLines[1])}};
  text::PairReader reader(&pairs, {});
  training::Batch batch;
  reader.Next(&batch);
  std::cout << vocabulary.Decode(batch.feed(text::PairReader::kSource).ToVector<int64_t>()) << "\n"
            << vocabulary.Decode(batch.feed(text::PairReader::kLabel).ToVector<int64_t>()) << "\n";
}

}  // namespace

int main() {
  ReadLabelledLines();
  ReadPairsOfPieces();
  try {
    text::ReadVocabulary("no_such_file");
  } catch (const Error& error) {
    std::cout << ErrorCodeName(error.code()) << "\n";
  }
}
