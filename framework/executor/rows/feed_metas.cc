#include "framework/executor/rows/feed_metas.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "framework/base/error.h"

namespace skiff {
namespace {

std::shared_ptr<const LoDGroup> GroupOf(const Tensor& feed) {
  if (feed.lod().empty()) return nullptr;
  return std::make_shared<const LoDGroup>(LoDGroup{.offsets = feed.lod()});
}

}  // namespace

void CheckFeeds(const FeedList& feeds) {
  for (const auto& [name, tensor] : feeds) {
    SKIFF_ENFORCE(tensor.has_data(), kInvalidArgument, "feed \"", name,
                  "\": the tensor has no data");
    SKIFF_ENFORCE(tensor.layout().is_plain(), kInvalidArgument, "feed \"", name, "\": layout ",
                  tensor.layout(), " given, plain expected");
    SKIFF_ENFORCE(tensor.place().is_cpu(), kInvalidArgument, "feed \"", name,
                  "\": the tensor is on ", tensor.place(), ", expected one on the CPU");
  }
}

FeedMetas MetasOfFeeds(const Program& program, const FeedList& feeds) {
  FeedMetas metas;
  for (const auto& [name, tensor] : feeds) {
    TensorMeta& meta =
        metas
            .emplace_back(name, TensorMeta{.shape = tensor.shape(),
                                           .dtype = tensor.dtype(),
                                           .lod_level = static_cast<int32_t>(tensor.lod().size()),
                                           .layout = tensor.layout(),
                                           .persistable = false,
                                           .lod = GroupOf(tensor),
                                           .is_array = tensor.array() != nullptr})
            .second;
    const Var* var = program.root()->FindVar(name);
    if (var == nullptr || var->kind != VarKind::kLoDRankTable) continue;
    meta.shape_lod = std::exchange(meta.lod, nullptr);
    meta.lod_level = 0;
  }
  return metas;
}

bool HasRaggedFeed(const FeedMetas& feeds) {
  return std::ranges::any_of(feeds, [](const auto& feed) { return feed.second.lod != nullptr; });
}

CountClasses CountsOfFeeds(const Program& program, const FeedMetas& feeds) {
  std::vector<bool> varies;
  for (const auto& [name, meta] : feeds) {
    const Var* var = program.root()->FindVar(name);
    varies.push_back(var != nullptr && !var->dims.empty() && var->dims[0] < 0);
  }
  return CountClasses(feeds, varies);
}

}  // namespace skiff
