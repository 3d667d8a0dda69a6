// Tests what the build promises to every package: the language level, OpenMP, and
// each system library found, compiled against and linked.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/build/toolchain_test.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h, which compiles what follows once for each instruction set.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace skiff::build_test {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

float Sum(const float* values, size_t count) {
  const hn::ScalableTag<float> tag;
  const size_t lanes = hn::Lanes(tag);
  auto sums = hn::Zero(tag);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) sums = hn::Add(sums, hn::LoadU(tag, values + i));
  float sum = hn::GetLane(hn::SumOfLanes(tag, sums));
  for (; i < count; ++i) sum += values[i];
  return sum;
}

}  // namespace HWY_NAMESPACE
}  // namespace skiff::build_test
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <gflags/gflags.h>
#include <glog/logging.h>
#include <gtest/gtest.h>
#include <omp.h>
#include <unicode/uchar.h>
#include <zip.h>
#include <zlib.h>

#include <concepts>
#include <cstdint>
#include <dnnl.hpp>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <protozero/pbf_writer.hpp>
#include <span>
#include <string>
#include <vector>

#include "tests/build/sample.pb.h"

DEFINE_int32(answer, 42, "A flag, to see that gflags is linked.");

namespace skiff::build_test {

HWY_EXPORT(Sum);

struct Options {
  int rows = 1;
  int columns = 1;
};

template <std::integral T>
T Product(std::span<const T> values) {
  return std::accumulate(values.begin(), values.end(), T{1}, std::multiplies<>());
}

TEST(Toolchain, SpeaksCpp20) {
  const std::vector<int64_t> dims = {2, 3};
  EXPECT_EQ(Product(std::span<const int64_t>(dims)), 6);
  const Options options = {.columns = 5};
  EXPECT_EQ(options.rows * options.columns, 5);
}

TEST(Toolchain, RunsOpenMpThreads) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer does not see the barriers of libgomp";
#endif
  int threads = 0;
#pragma omp parallel num_threads(2) reduction(+ : threads)
  threads += 1;
  EXPECT_EQ(threads, 2);
}

TEST(Toolchain, DispatchesToEveryInstructionSet) {
  std::vector<float> values(1001);
  std::iota(values.begin(), values.end(), 0.0f);
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    EXPECT_EQ(HWY_DYNAMIC_DISPATCH(Sum)(values.data(), values.size()), 500500.0f)
        << hwy::TargetName(target);
  }
  hwy::SetSupportedTargetsForTest(0);
}

// Kernels support the APIs of both major versions; another one needs new code.
TEST(Toolchain, LinksAKnownOneDnn) {
  EXPECT_EQ(dnnl_version()->major, DNNL_VERSION_MAJOR);
  EXPECT_TRUE(DNNL_VERSION_MAJOR == 2 || DNNL_VERSION_MAJOR == 3);
  dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  EXPECT_EQ(engine.get_kind(), dnnl::engine::kind::cpu);
}

TEST(Toolchain, GeneratesProtobufCode) {
  Sample sample;
  sample.set_name("x");
  sample.add_dims(-1);
  Sample copy;
  ASSERT_TRUE(copy.ParseFromString(sample.SerializeAsString()));
  EXPECT_EQ(copy.dims(0), -1);
}

TEST(Toolchain, LinksTheSmallLibraries) {
  EXPECT_EQ(FLAGS_answer, 42);
  EXPECT_EQ(nlohmann::json::parse("[1, 2]").size(), 2u);
  std::string message;
  protozero::pbf_writer(message).add_int32(1, 5);
  EXPECT_EQ(message, "\x08\x05");
  EXPECT_STREQ(zlibVersion(), ZLIB_VERSION);
  EXPECT_NE(zip_libzip_version(), nullptr);
  EXPECT_TRUE(u_ispunct(0x3002));  // an ideographic full stop
  LOG(INFO) << "glog is linked";
}

}  // namespace skiff::build_test

#endif  // HWY_ONCE
