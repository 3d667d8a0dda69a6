// What Skiff uses of NCCL's interface, as versions from 2.14 on have it. The declarations are here,
// so that a build needs no headers of NCCL; where there are some, tests/framework/comm/
// nccl_declarations_test.cc compares.
//
// Enumerations are passed as int. Functions that return int return a result.
#pragma once

#include <cstddef>

namespace skiff::nccl {

inline constexpr int kOldestVersion =
    21400;  // 2.14.0, the first with communicators that don't block

inline constexpr int kSuccess = 0;          // ncclSuccess
inline constexpr int kSystemError = 2;      // ncclSystemError
inline constexpr int kInvalidArgument = 4;  // ncclInvalidArgument
inline constexpr int kInvalidUsage = 5;     // ncclInvalidUsage
inline constexpr int kRemoteError = 6;      // ncclRemoteError
inline constexpr int kInProgress = 7;       // ncclInProgress

inline constexpr int kUint8 = 1;     // ncclUint8
inline constexpr int kFloat16 = 6;   // ncclFloat16
inline constexpr int kFloat32 = 7;   // ncclFloat32
inline constexpr int kFloat64 = 8;   // ncclFloat64
inline constexpr int kBFloat16 = 9;  // ncclBfloat16

inline constexpr int kSum = 0;  // ncclSum

// ncclComm_t.
using Comm = struct ncclComm*;

// ncclUniqueId.
struct UniqueId {
  char bytes[128];
};

// The first members of ncclConfig_t, as version 2.14 has them. NCCL goes by the size and version
// that are given.
struct Config {
  size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = kOldestVersion;
  int blocking = 0;
};
static_assert(offsetof(Config, blocking) == 16 && sizeof(Config) == 24);

using GetVersionFunction = int(int* version);
using GetUniqueIdFunction = int(UniqueId* id);
using InitFunction = int(Comm* comm, int ranks, UniqueId id, int rank, Config* config);
using CommFunction = int(Comm comm);
using AsyncErrorFunction = int(Comm comm, int* result);
using ErrorStringFunction = const char*(int result);
using LastErrorFunction = const char*(Comm comm);
using GroupFunction = int();
using SendFunction = int(const void* data, size_t count, int type, int rank, Comm comm,
                         struct CUstream_st* stream);
using ReceiveFunction = int(void* data, size_t count, int type, int rank, Comm comm,
                            struct CUstream_st* stream);
using AllReduceFunction = int(const void* in, void* out, size_t count, int type, int operation,
                              Comm comm, struct CUstream_st* stream);

}  // namespace skiff::nccl
