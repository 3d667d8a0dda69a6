#include "models/seq2seq/network_file.h"

#include <nlohmann/json.hpp>

#include "framework/base/error.h"

namespace skiff::models {
namespace {

// Calls visit(name, option) for each option.
template <typename Options, typename Visit>
void VisitOptions(Options& options, const Visit& visit) {
  // An option that is missing here doesn't compile.
  auto& [source_tokens, target_tokens, embedding, hidden, cell, layers, bidirectional, attention,
         input_feeding, tied_embeddings, dropout, label_smoothing] = options;
  visit("source_tokens", source_tokens);
  visit("target_tokens", target_tokens);
  visit("embedding", embedding);
  visit("hidden", hidden);
  visit("cell", cell);
  visit("layers", layers);
  visit("bidirectional", bidirectional);
  visit("attention", attention);
  visit("input_feeding", input_feeding);
  visit("tied_embeddings", tied_embeddings);
  visit("dropout", dropout);
  visit("label_smoothing", label_smoothing);
}

}  // namespace

std::string NetworkText(const Seq2SeqOptions& options) {
  nlohmann::ordered_json json;
  VisitOptions(options, [&](const char* name, const auto& option) { json[name] = option; });
  return json.dump(2) + "\n";
}

Seq2SeqOptions ParseNetwork(const std::string& text, const std::string& source) {
  nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  SKIFF_ENFORCE(json.is_object(), kInvalidArgument, source, ": expected a JSON object");
  Seq2SeqOptions options;
  VisitOptions(options, [&](const char* name, auto& option) {
    const auto found = json.find(name);
    if (found == json.end()) return;
    const nlohmann::json like = option;
    // 0 may stand for 0.0.
    const bool fits =
        found->type() == like.type() || (like.is_number() && found->is_number_integer());
    SKIFF_ENFORCE(fits, kInvalidArgument, source, ": \"", name, "\" is ", found->dump(),
                  ", expected one like ", like.dump());
    found->get_to(option);
    json.erase(found);
  });
  SKIFF_ENFORCE(json.empty(), kInvalidArgument, source, ": \"", json.begin().key(),
                "\" is no option of the network");
  return options;
}

}  // namespace skiff::models
