#include "framework/training/bound_feeds.h"

#include <algorithm>
#include <utility>

namespace skiff::training {
namespace {

bool AreAlike(const FeedList& x, const FeedList& y) {
  return std::ranges::equal(x, y, [](const auto& a, const auto& b) {
    return a.first == b.first && a.second.shape() == b.second.shape() &&
           a.second.dtype() == b.second.dtype() && a.second.lod() == b.second.lod();
  });
}

}  // namespace

BoundFeeds::Bound& BoundFeeds::For(const FeedList& feeds) {
  const auto found = std::ranges::find_if(
      bound_, [&](const Bound& bound) { return AreAlike(bound.feeds, feeds); });
  if (found != bound_.end()) {
    bound_.splice(bound_.begin(), bound_, found);
    // The parameters may have moved since, for example when flatten_parameters stored them flat.
    if (bound_.front().program->is_current()) return bound_.front();
    bound_.pop_front();
  }
  Bound bound;
  for (const auto& [name, tensor] : feeds) {
    Tensor copy(tensor.shape(), tensor.dtype());
    // CopyTensor copies no LoD, so batches with another LoD are of another kind.
    copy.set_lod(tensor.lod());
    bound.feeds.emplace_back(name, std::move(copy));
  }
  FeedList known;
  for (const auto& feed : bound.feeds) {
    if (program_.program().root()->FindVar(feed.first) != nullptr) known.push_back(feed);
  }
  bound.program = std::make_unique<BoundProgram>(program_.Bind(known, fetches_));
  bound_.push_front(std::move(bound));
  // Each kind of batch has an arena. Usually there are two: full batches and the last one.
  if (bound_.size() > capacity_) bound_.pop_back();
  return bound_.front();
}

const BoundProgram& BoundFeeds::Step(const FeedList& feeds) {
  Bound& bound = For(feeds);
  // A copy of the batch costs little beside a step, and keeps addresses fixed: BoundProgram then
  // looks up nothing.
  for (size_t i = 0; i < feeds.size(); ++i) CopyTensor(feeds[i].second, &bound.feeds[i].second);
  bound.program->Step();
  return *bound.program;
}

void BoundFeeds::Prepare(const std::vector<FeedShape>& feeds) {
  FeedList like;
  for (const FeedShape& feed : feeds) {
    like.emplace_back(feed.name, Tensor(feed.shape, feed.dtype));
  }
  For(like);
}

}  // namespace skiff::training
