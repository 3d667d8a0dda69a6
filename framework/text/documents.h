// Texts to pre-train on: documents of sentences, as text and as tokens.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "framework/text/tokenizer.h"

namespace skiff::text {

// The sentences of a document, in order.
using Document = std::vector<std::string>;

// Reads documents, plain or compressed with gzip: a sentence a line, an empty line between
// documents. Throws Error as ReadTextFile; kDataLoss if there is no sentence in the file.
std::vector<Document> ReadDocuments(const std::string& path);

// Reads a table that has a document in the last column of each line; tabs separate columns. The
// documents are cut by SplitSentences. Throws Error likewise.
std::vector<Document> ReadDocumentTable(const std::string& path);

// Cuts behind each ".", "!" or "?" that white space follows, and behind each of their ideographic
// forms. It doesn't know abbreviations.
Document SplitSentences(std::string_view text);

struct TokenizedDocument {
  std::vector<TokenSequence> sentences = {};  // none is empty
};

// Returns the documents as tokens, without sentences and documents of no token at all. A sentence
// of more than `longest_sentence` tokens becomes several sentences, cut between words where
// possible, so that no tokens are lost where inputs are short. Throws Error (kInvalidArgument) for
// a length below 1.
std::vector<TokenizedDocument> Tokenize(
    const Tokenizer& tokenizer, const std::vector<Document>& documents,
    int64_t longest_sentence = std::numeric_limits<int64_t>::max());

}  // namespace skiff::text
