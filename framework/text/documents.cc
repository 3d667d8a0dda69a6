#include "framework/text/documents.h"

#include <array>
#include <utility>

#include "framework/base/error.h"
#include "framework/io/text_lines.h"

namespace skiff::text {
namespace {

bool IsBlank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

bool IsAsciiSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

// Returns how many bytes of an end mark a text starts with: 0 if none.
size_t EndMarkBytes(std::string_view text) {
  constexpr std::array<std::string_view, 3> kIdeographic = {"。", "！", "？"};
  for (const std::string_view mark : kIdeographic) {
    if (text.starts_with(mark)) return mark.size();
  }
  const bool is_mark = text.starts_with('.') || text.starts_with('!') || text.starts_with('?');
  const bool is_end = text.size() == 1 || (text.size() > 1 && IsAsciiSpace(text[1]));
  return is_mark && is_end ? 1 : 0;
}

void AddSentence(std::string_view text, Document* document) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return;
  const size_t last = text.find_last_not_of(" \t\r\n");
  document->emplace_back(text.substr(first, last - first + 1));
}

// The end of the part of a sentence that starts at `first` and has at most `longest` tokens.
size_t PartEnd(const TokenSequence& sentence, size_t first, int64_t longest) {
  const size_t size = sentence.ids.size();
  if (static_cast<int64_t>(size - first) <= longest) return size;
  const size_t end = first + static_cast<size_t>(longest);
  for (size_t cut = end; cut > first; --cut) {
    if (sentence.roles[cut] != TokenRole::kInsideWord) return cut;
  }
  return end;
}

void AddParts(TokenSequence sentence, int64_t longest, TokenizedDocument* document) {
  if (sentence.size() <= longest) {
    if (sentence.size() > 0) document->sentences.push_back(std::move(sentence));
    return;
  }
  for (size_t first = 0; first < sentence.ids.size();) {
    const size_t end = PartEnd(sentence, first, longest);
    TokenSequence part;
    for (size_t i = first; i < end; ++i) part.Add(sentence.ids[i], sentence.roles[i]);
    document->sentences.push_back(std::move(part));
    first = end;
  }
}

}  // namespace

std::vector<Document> ReadDocuments(const std::string& path) {
  const std::string text = ReadTextFile(path);
  std::vector<Document> documents;
  bool starts_document = true;
  for (const std::string_view line : LinesOf(text)) {
    if (IsBlank(line)) {
      starts_document = true;
      continue;
    }
    if (starts_document) documents.emplace_back();
    documents.back().emplace_back(line);
    starts_document = false;
  }
  SKIFF_ENFORCE(!documents.empty(), kDataLoss, path,
                " holds no sentences: expected one a line, and empty lines between documents");
  return documents;
}

std::vector<Document> ReadDocumentTable(const std::string& path) {
  const std::string text = ReadTextFile(path);
  std::vector<Document> documents;
  for (const std::string_view line : LinesOf(text)) {
    const size_t tab = line.rfind('\t');
    Document document = SplitSentences(tab == std::string_view::npos ? line : line.substr(tab + 1));
    if (!document.empty()) documents.push_back(std::move(document));
  }
  SKIFF_ENFORCE(!documents.empty(), kDataLoss, path, " holds no text in its last column");
  return documents;
}

Document SplitSentences(std::string_view text) {
  Document document;
  size_t start = 0;
  for (size_t i = 0; i < text.size();) {
    const size_t mark = EndMarkBytes(text.substr(i));
    i += mark == 0 ? 1 : mark;
    if (mark == 0) continue;
    // "Really? ! ?" is one sentence.
    while (i < text.size()) {
      const size_t next = text.find_first_not_of(" \t\r\n", i);
      const size_t bytes = next == std::string_view::npos ? 0 : EndMarkBytes(text.substr(next));
      if (bytes == 0) break;
      i = next + bytes;
    }
    AddSentence(text.substr(start, i - start), &document);
    start = i;
  }
  AddSentence(text.substr(start), &document);
  return document;
}

std::vector<TokenizedDocument> Tokenize(const Tokenizer& tokenizer,
                                        const std::vector<Document>& documents,
                                        int64_t longest_sentence) {
  SKIFF_ENFORCE(longest_sentence >= 1, kInvalidArgument, "sentences of at most ", longest_sentence,
                " tokens: expected at least 1");
  std::vector<TokenizedDocument> tokenized;
  for (const Document& document : documents) {
    TokenizedDocument tokens;
    for (const std::string& sentence : document) {
      AddParts(tokenizer.Encode(sentence), longest_sentence, &tokens);
    }
    if (!tokens.sentences.empty()) tokenized.push_back(std::move(tokens));
  }
  return tokenized;
}

}  // namespace skiff::text
