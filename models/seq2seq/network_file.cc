#include "models/seq2seq/network_file.h"

#include <nlohmann/json.hpp>

#include "framework/base/error.h"
#include "framework/io/json.h"

namespace skiff::models {
namespace {

// Calls visit(name, member) for each option and the checksum.
template <typename Network, typename Visit>
void VisitMembers(Network& network, const Visit& visit) {
  // A member that is missing here doesn't compile.
  auto& [options, vocabularies] = network;
  auto& [source_tokens, target_tokens, embedding, hidden, cell, layers, bidirectional, attention,
         input_feeding, tied_embeddings, dropout, label_smoothing, decoder] = options;
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
  visit("decoder", decoder);
  visit("vocabularies", vocabularies);
}

}  // namespace

std::string NetworkText(const SavedNetwork& network) {
  nlohmann::ordered_json json;
  VisitMembers(network, [&](const char* name, const auto& member) { json[name] = member; });
  return json.dump(2) + "\n";
}

SavedNetwork ParseNetwork(const std::string& text, const std::string& source) {
  nlohmann::json json = ParseJson(text, source, ErrorCode::kInvalidArgument);
  SKIFF_ENFORCE(json.is_object(), kInvalidArgument, source, ": expected a JSON object, found ",
                QuotedJson(json));
  SavedNetwork network;
  VisitMembers(network, [&](const char* name, auto& member) {
    const auto found = json.find(name);
    if (found == json.end()) return;
    const nlohmann::json like = member;
    // 0 may stand for 0.0.
    const bool fits = like.is_number() ? JsonInteger(*found).has_value() ||
                                             (like.is_number_float() && found->is_number())
                                       : found->type() == like.type();
    SKIFF_ENFORCE(fits, kInvalidArgument, source, ": \"", name, "\" is ", QuotedJson(*found),
                  ", expected one like ", QuotedJson(like));
    found->get_to(member);
    json.erase(found);
  });
  SKIFF_ENFORCE(json.empty(), kInvalidArgument, source, ": \"", json.begin().key(),
                "\" is no option of the network");
  return network;
}

}  // namespace skiff::models
