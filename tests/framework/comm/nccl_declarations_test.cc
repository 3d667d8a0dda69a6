// Skiff's declarations of NCCL's interface are those of nccl.h, where there is one.
#include <gtest/gtest.h>

#if defined(WITH_CUDA) && __has_include(<nccl.h>)

#include <nccl.h>

#include <cstddef>
#include <type_traits>

#include "framework/comm/nccl_declarations.h"

namespace skiff::nccl {
namespace {

// Whether a function's argument or result of one type may be declared as the other.
template <typename Ours, typename Theirs>
constexpr bool IsPassedAlike() {
  constexpr bool is_number = std::is_integral_v<Ours> && !std::is_pointer_v<Ours>;
  return sizeof(Ours) == sizeof(Theirs) && std::is_pointer_v<Ours> == std::is_pointer_v<Theirs> &&
         is_number == (std::is_integral_v<Theirs> || std::is_enum_v<Theirs>);
}

template <typename Ours, typename Theirs>
struct IsCalledAlike : std::false_type {};
template <typename R, typename... A, typename S, typename... B>
struct IsCalledAlike<R(A...), S(B...)> {
  static constexpr bool Value() {
    if constexpr (sizeof...(A) != sizeof...(B)) {
      return false;
    } else {
      return IsPassedAlike<R, S>() && (IsPassedAlike<A, B>() && ...);
    }
  }
  static constexpr bool value = Value();
};
template <typename Ours, typename Theirs>
constexpr bool kIsCalledAlike = IsCalledAlike<Ours, Theirs>::value;

static_assert(kIsCalledAlike<GetVersionFunction, decltype(ncclGetVersion)>);
static_assert(kIsCalledAlike<GetUniqueIdFunction, decltype(ncclGetUniqueId)>);
static_assert(kIsCalledAlike<InitFunction, decltype(ncclCommInitRankConfig)>);
static_assert(kIsCalledAlike<CommFunction, decltype(ncclCommFinalize)>);
static_assert(kIsCalledAlike<CommFunction, decltype(ncclCommDestroy)>);
static_assert(kIsCalledAlike<CommFunction, decltype(ncclCommAbort)>);
static_assert(kIsCalledAlike<AsyncErrorFunction, decltype(ncclCommGetAsyncError)>);
static_assert(kIsCalledAlike<ErrorStringFunction, decltype(ncclGetErrorString)>);
static_assert(kIsCalledAlike<LastErrorFunction, decltype(ncclGetLastError)>);
static_assert(kIsCalledAlike<GroupFunction, decltype(ncclGroupStart)>);
static_assert(kIsCalledAlike<GroupFunction, decltype(ncclGroupEnd)>);
static_assert(kIsCalledAlike<SendFunction, decltype(ncclSend)>);
static_assert(kIsCalledAlike<ReceiveFunction, decltype(ncclRecv)>);
static_assert(kIsCalledAlike<AllReduceFunction, decltype(ncclAllReduce)>);
static_assert(!kIsCalledAlike<GroupFunction, decltype(ncclCommAbort)>);
static_assert(!kIsCalledAlike<SendFunction, decltype(ncclAllReduce)>);

static_assert(kSuccess == ncclSuccess && kSystemError == ncclSystemError &&
              kInvalidArgument == ncclInvalidArgument && kInvalidUsage == ncclInvalidUsage &&
              kRemoteError == ncclRemoteError && kInProgress == ncclInProgress);
static_assert(kUint8 == ncclUint8 && kFloat16 == ncclFloat16 && kFloat32 == ncclFloat32 &&
              kFloat64 == ncclFloat64 && kBFloat16 == ncclBfloat16);
static_assert(kSum == ncclSum);
static_assert(sizeof(UniqueId) == NCCL_UNIQUE_ID_BYTES);
static_assert(kOldestVersion == NCCL_VERSION(2, 14, 0));

static_assert(offsetof(Config, size) == offsetof(ncclConfig_t, size) &&
              offsetof(Config, magic) == offsetof(ncclConfig_t, magic) &&
              offsetof(Config, version) == offsetof(ncclConfig_t, version) &&
              offsetof(Config, blocking) == offsetof(ncclConfig_t, blocking));

TEST(NcclDeclarations, HaveTheNumberThatMarksConfigurations) {
  const ncclConfig_t initialized = NCCL_CONFIG_INITIALIZER;
  EXPECT_EQ(Config().magic, initialized.magic);
}

}  // namespace
}  // namespace skiff::nccl

#else

TEST(NcclDeclarations, AreCompared) { GTEST_SKIP() << "no nccl.h, or built without CUDA"; }

#endif
