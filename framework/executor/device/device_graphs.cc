#include "framework/executor/device/device_graphs.h"

#include <algorithm>

#include "framework/base/error.h"

namespace skiff {
namespace {

// Launches that a graph must save. Launching a graph costs the host something, too; how many
// launches that is hasn't been measured.
constexpr int64_t kFewest = 4;

}  // namespace

DeviceGraphs::DeviceGraphs(DeviceLink* link, const std::vector<int64_t>& launches,
                           const std::vector<size_t>& cuts)
    : link_(*link) {
  size_t begin = 0;
  int64_t launched = 0;
  for (size_t i = 0; i <= launches.size(); ++i) {
    const int64_t of_step = i == launches.size() ? 0 : launches[i];
    if (of_step == 0 || std::ranges::count(cuts, i) > 0) {
      if (launched >= kFewest) stretches_.push_back({.begin = begin, .end = i});
      begin = of_step == 0 ? i + 1 : i;
      launched = 0;
    }
    launched += of_step;
  }
}

DeviceGraphs::~DeviceGraphs() { Clear(); }

size_t DeviceGraphs::Run(size_t step, const std::function<void(size_t)>& run) {
  const auto found = std::ranges::find(stretches_, step, &Stretch::begin);
  if (found == stretches_.end()) return step;
  Stretch& stretch = *found;
  if (stretch.has_run && !stretch.graph) Capture(run, &stretch);
  if (stretch.graph) {
    link_.stream().Launch(*stretch.graph);
  } else {
    for (size_t i = stretch.begin; i < stretch.end; ++i) run(i);
  }
  stretch.has_run = true;
  return stretch.end;
}

void DeviceGraphs::Capture(const std::function<void(size_t)>& run, Stretch* stretch) {
  const auto abandon = [this] {
    try {
      link_.stream().EndCapture();
    } catch (const Error&) {
      // The first Error says why.
    }
  };
  constexpr const char* kWhere = "in a graph, which CompileOptions::graphs = false avoids";
  link_.stream().BeginCapture();
  try {
    for (size_t i = stretch->begin; i < stretch->end; ++i) run(i);
  } catch (const Error& error) {
    abandon();
    throw error.WithContext(kWhere);
  } catch (...) {
    abandon();
    throw;
  }
  try {
    stretch->graph = link_.stream().EndCapture();
  } catch (const Error& error) {
    throw error.WithContext(kWhere);
  }
}

void DeviceGraphs::Clear() {
  if (count() > 0) link_.WaitQuietly();
  for (Stretch& stretch : stretches_) {
    stretch.graph.reset();
    stretch.has_run = false;
  }
}

int64_t DeviceGraphs::count() const {
  return std::ranges::count_if(stretches_,
                               [](const Stretch& stretch) { return stretch.graph != nullptr; });
}

}  // namespace skiff
