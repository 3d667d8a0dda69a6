#include "framework/io/npz.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <optional>
#include <random>

#include "framework/io/lod_entries.h"
#include "tests/framework/io/same_tensors.h"
#include "tests/harness/damage_bytes.h"
#include "tests/harness/full_disk.h"
#include "tests/harness/temp_directory.h"

namespace skiff {
namespace {

// A version 1.0 array as NumPy writes it.
std::string Npy(const std::string& dict, const std::string& data) {
  std::string text = dict;
  text.resize((10 + dict.size() + 1 + 63) / 64 * 64 - 11, ' ');
  text += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  AppendNumber(static_cast<uint16_t>(text.size()), &bytes);
  return bytes + text + data;
}

std::string Dict(const std::string& descr, const std::string& shape) {
  return "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }";
}

Tensor Parse(const std::string& bytes) {
  MemorySource source(bytes, "memory");
  return ReadNpy(&source);
}

ErrorCode CodeOf(const std::string& bytes) {
  return ErrorOf([&] { Parse(bytes); }).code();
}

const std::string kInts = std::string("\x01\0\0\0\x02\0\0\0", 8);

TEST(Npy, ReadsTheBytesOfNumpy) {
  const Tensor tensor = Parse(Npy(Dict("<i4", "(1, 2)"), kInts));
  EXPECT_EQ(tensor.shape(), Shape({1, 2}));
  EXPECT_EQ(tensor.ToVector<int32_t>(), (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(Parse(Npy(Dict("<i8", "()"), kInts)).shape(), Shape());
  EXPECT_EQ(Parse(Npy(Dict("<f4", "(2,)"), kInts)).shape(), Shape({2}));
  EXPECT_EQ(Parse(Npy(Dict("<f8", "(0, 7)"), "")).shape(), Shape({0, 7}));
  EXPECT_EQ(Parse(Npy(Dict("|b1", "(2,)"), std::string("\0\1", 2))).ToVector<bool>(),
            (std::vector<bool>{false, true}));
}

TEST(Npy, ReadsKeysInAnyOrderAndTheLongHeader) {
  const std::string dict = "{\"shape\":(2,),\"descr\":\"<i4\",\"fortran_order\":False}\n";
  for (char version : {2, 3}) {
    std::string bytes = std::string("\x93NUMPY", 6) + version + '\0';
    AppendNumber(static_cast<uint32_t>(dict.size()), &bytes);
    EXPECT_EQ(Parse(bytes + dict + kInts).ToVector<int32_t>(), (std::vector<int32_t>{1, 2}));
  }
}

TEST(Npy, WritesTheBytesOfNumpy) {
  const TempDirectory directory;
  WriteNpyFile(directory / "a.npy", Tensor::FromValues<int32_t>({2}, {1, 2}));
  EXPECT_EQ(BytesOf(directory / "a.npy"), Npy(Dict("<i4", "(2,)"), kInts));
  EXPECT_EQ(ReadNpyFile(directory / "a.npy").ToVector<int32_t>(), (std::vector<int32_t>{1, 2}));
}

TEST(Npy, RefusesTruncationAtEveryByte) {
  const std::string bytes = Npy(Dict("<i4", "(2,)"), kInts);
  for (size_t size = 0; size < bytes.size(); ++size) {
    SCOPED_TRACE(size);
    EXPECT_EQ(CodeOf(bytes.substr(0, size)), ErrorCode::kDataLoss);
  }
  EXPECT_EQ(CodeOf(bytes + "x"), ErrorCode::kDataLoss);
}

TEST(Npy, SurvivesEveryFlippedBit) {
  const std::string bytes = Npy(Dict("<i4", "(2,)"), kInts);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    try {
      Parse(flipped);
    } catch (const Error&) {
    }
  }
}

// tests/python_stub/files_test.py asks NumPy.
TEST(Npy, ReadsTheHeadersOfOtherWriters) {
  const auto text = [](const std::string& header) {
    std::string bytes("\x93NUMPY\x01\x00", 8);
    AppendNumber(static_cast<uint16_t>(header.size()), &bytes);
    return bytes + header + kInts;
  };
  const std::string dict = "{'descr': '<i4', 'fortran_order': False, 'shape': (2,)}";
  for (const std::string& header :
       {dict, dict + "\r\n", "\t" + dict + "\f \n", Dict("<i4", "(2L,)"),
        std::string("{u'descr': u'<i4', u'fortran_order':\nFalse, u'shape': (2,)}")}) {
    SCOPED_TRACE(header);
    EXPECT_EQ(Parse(text(header)).ToVector<int32_t>(), (std::vector<int32_t>{1, 2}));
  }
  for (const char* descr : {"|i4", "=i4", "i4", "i", "<i", "int32"}) {
    SCOPED_TRACE(descr);
    EXPECT_EQ(Parse(Npy(Dict(descr, "(2,)"), kInts)).ToVector<int32_t>(),
              (std::vector<int32_t>{1, 2}));
  }
}

TEST(Npy, ReadsBothByteOrders) {
  EXPECT_EQ(Parse(Npy(Dict(">i4", "(2,)"), std::string("\0\0\0\x01\xff\xff\xff\xfe", 8)))
                .ToVector<int32_t>(),
            (std::vector<int32_t>{1, -2}));
  EXPECT_EQ(Parse(Npy(Dict(">i1", "(2,)"), "\x01\x02")).ToVector<int8_t>(),
            (std::vector<int8_t>{1, 2}));
}

TEST(Npy, ReadsFortranOrder) {
  const auto read = [](const std::string& shape, const std::string& data) {
    return Parse(Npy("{'descr': '|i1', 'fortran_order': True, 'shape': " + shape + "}", data));
  };
  const Tensor matrix = read("(2, 3)", "\x01\x04\x02\x05\x03\x06");
  EXPECT_EQ(matrix.shape(), Shape({2, 3}));
  EXPECT_EQ(matrix.ToVector<int8_t>(), (std::vector<int8_t>{1, 2, 3, 4, 5, 6}));
  const Tensor cube = read("(2, 1, 2)", "\x01\x03\x02\x04");
  EXPECT_EQ(cube.shape(), Shape({2, 1, 2}));
  EXPECT_EQ(cube.ToVector<int8_t>(), (std::vector<int8_t>{1, 2, 3, 4}));
  EXPECT_EQ(read("()", "\x07").Item<int8_t>(), 7);
  EXPECT_EQ(read("(0, 3)", "").shape(), Shape({0, 3}));
}

TEST(Npy, RefusesWhatItDoesNotRead) {
  for (const char* descr :
       {"<c8", "|O", "<U2", "|S3", "<u4", "l", "int", "<int32", "<", "", "<f4 ", "<<f4"}) {
    SCOPED_TRACE(descr);
    EXPECT_EQ(CodeOf(Npy(Dict(descr, "(2,)"), kInts)), ErrorCode::kUnimplemented);
  }
  EXPECT_EQ(
      CodeOf(Npy("{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (2,), }", kInts)),
      ErrorCode::kUnimplemented);
}

TEST(Npy, SaysWhereWhatWasFoundAndWhatWasExpected) {
  const auto expect = [](const std::string& bytes, ErrorCode code, const std::string& message) {
    ExpectError([&] { Parse(bytes); }, code, "memory" + message);
  };
  const auto corrupt = [&](const std::string& bytes, const std::string& message) {
    expect(bytes, ErrorCode::kDataLoss, ", byte " + message);
  };
  corrupt("\x93NUM", "0: magic of a NumPy array: expected 6 bytes, found 4");
  corrupt("\x93NUMPX\x01", "0: no NumPy array: expected \"\\x93NUMPY\"");
  corrupt("\x93NUMPY\x04\x01", "6: version 4.1 of a NumPy array, expected 1.0, 2.0 or 3.0");
  corrupt(std::string("\x93NUMPY\x02\x00\xff\xff\xff\x7f", 12),
          "6: header of 2147483647 bytes, expected at most 10000");
  corrupt(std::string("\x93NUMPY\x01\x00\x76\x00{", 11),
          "10: header of a NumPy array: expected 118 bytes, found 1");
  corrupt(Npy(Dict("<i4", "(-2,)"), kInts),
          "61: header of a NumPy array: expected a dim from 0 to 2^63 - 1");
  corrupt(Npy(Dict("<i4", "(4294967296, 4294967296)"), kInts),
          "128: shape [4294967296, 4294967296] has more than 281474976710656 elements, a dim of 0 "
          "counted as 1");
  corrupt(Npy(Dict("<i4", "(3,)"), kInts),
          "128: elements of int32 [3]: expected 12 bytes, found 8");
  corrupt(Npy(Dict("<i4", "(1,)"), kInts), "132: 4 bytes remain after the array, expected none");
  expect(Npy(Dict(">u4", "(2,)"), kInts), ErrorCode::kUnimplemented,
         ": NumPy array of type \">u4\" is not supported");
}

TEST(Npy, RefusesMalformedHeaders) {
  const std::vector<std::string> dicts = {
      "",
      "{}",
      "[]",
      "{'descr': '<i4', 'fortran_order': False}",
      Dict("<i4", "(2)"),
      Dict("<i4", "(2,, )"),
      Dict("<i4", "(2 1)"),
      Dict("<i4", "(-2,)"),
      Dict("<i4", "(2LL,)"),
      Dict("<i4", "(L,)"),
      Dict("<i4", "(9223372036854775808,)"),
      Dict("<i4", "(9223372036854775807,)"),
      Dict("<i4", "(4294967296, 4294967296)"),
      Dict("<i4", "(2305843009213693960, 0)"),
      Dict("<i4", "(0, 2305843009213693960)"),
      Dict("<i4", "(1,1,1,1,1,1,1,1,1,2)"),
      Dict("<i4", "2"),
      Dict("<i4", "(3,)"),
      Dict("<i4", "(1,)"),
      "{'descr': '<i4', 'fortran_order': 0, 'shape': (2,), }",
      "{'descr': '<i4', 'descr': '<i4', 'fortran_order': False, 'shape': (2,), }",
      "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), 'x': 1}",
      "{'descr': '<i4', 'fortran_order': False 'shape': (2,)}",
      Dict("<i4", "(2,)") + "x",
  };
  for (const std::string& dict : dicts) {
    SCOPED_TRACE(dict);
    EXPECT_EQ(CodeOf(Npy(dict, kInts)), ErrorCode::kDataLoss);
  }
  EXPECT_EQ(CodeOf(Npy(Dict("|b1", "(1,)"), "\x02")), ErrorCode::kDataLoss);
}

TensorMap Samples() {
  TensorMap tensors;
  tensors["bool"] = Tensor::FromValues<bool>({2}, {true, false});
  tensors["int8"] = Tensor::FromValues<int8_t>({1}, {-1});
  tensors["uint8"] = Tensor::FromValues<uint8_t>({1}, {200});
  tensors["int16"] = Tensor::FromValues<int16_t>({1}, {-300});
  tensors["scope/int32"] = Tensor::FromValues<int32_t>({1, 3}, {1, 2, 3});
  tensors["int64"] = Tensor::FromValues<int64_t>({}, {int64_t{1} << 40});
  tensors["float32"] = Tensor::FromValues<float>({1000}, std::vector<float>(1000, 0.5f));
  tensors["float64"] = Tensor::FromValues<double>({0, 2}, {});
  return tensors;
}

TEST(Npz, RoundTripsStoredAndDeflated) {
  const TempDirectory directory;
  for (bool compress : {false, true}) {
    WriteNpz(directory / "a.npz", Samples(), compress);
    ExpectSame(ReadNpz(directory / "a.npz"), Samples());
    EXPECT_EQ(NamesIn(directory.path()), std::vector<std::string>{"a.npz"});
  }
}

TEST(Npz, RoundTripsNothing) {
  const TempDirectory directory;
  WriteNpz(directory / "a.npz", {});
  EXPECT_TRUE(ReadNpz(directory / "a.npz").empty());
}

Tensor Offsets(const std::vector<int64_t>& offsets) {
  return Tensor::FromValues<int64_t>({static_cast<int64_t>(offsets.size())}, offsets);
}

Tensor WithLoD(Tensor tensor, LoD lod) {
  tensor.set_lod(std::move(lod));
  return tensor;
}

TEST(Npz, RoundTripsLoDOfSeveralLevels) {
  const TempDirectory directory;
  TensorMap tensors = Samples();
  tensors["x"] = WithLoD(Tensor({3, 2}, DType::kFloat32), {{0, 2, 2}, {0, 1, 3}});
  tensors["x.y"] = WithLoD(Tensor({0, 2}, DType::kFloat64), {{0, 0}});
  tensors["x.lodger"] = Tensor({1}, DType::kInt64);
  for (bool compress : {false, true}) {
    WriteNpz(directory / "a.npz", tensors, compress);
    ExpectSame(ReadNpz(directory / "a.npz"), tensors);
  }
}

std::string Replaced(std::string bytes, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = bytes.find(from, at)) != std::string::npos; at += to.size()) {
    bytes.replace(at, from.size(), to);
  }
  return bytes;
}

// Writes arrays as NumPy would, which knows no LoD.
void PutArrays(const std::string& path, const TensorMap& arrays) {
  TensorMap others;
  for (const auto& [name, array] : arrays) {
    std::string other = name;
    // Of the same length, so that the archive's bytes stay where they are.
    if (const size_t at = other.find(".lod"); at != std::string::npos) other.replace(at, 4, "_lod");
    others.emplace(other, array);
  }
  WriteNpz(path, others);
  PutBytes(path, Replaced(BytesOf(path), "_lod", ".lod"));
}

TEST(Npz, ReadsOffsetsThatArraysHold) {
  const TempDirectory directory;
  const std::string path = directory / "a.npz";
  PutArrays(path, {{"x", Tensor({3}, DType::kInt64)},
                   {"x.lod0", Offsets({0, 1})},
                   {"x.lod1", Offsets({0, 3})}});
  const TensorMap read = ReadNpz(path);
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read.at("x").lod(), (LoD{{0, 1}, {0, 3}}));
}

TEST(Npz, RefusesOffsetsThatAreNone) {
  const TempDirectory directory;
  const std::string path = directory / "a.npz";
  const auto expect = [&](const TensorMap& arrays, const std::string& message) {
    PutArrays(path, arrays);
    ExpectError([&] { ReadNpz(path); }, ErrorCode::kDataLoss, path + ": " + message);
  };
  const Tensor x({3, 2}, DType::kFloat32);
  expect({{"x", x}, {"x.lod0", Tensor({2}, DType::kInt32)}},
         "\"x.lod0\": int32 [2], expected offsets of int64 in one dim");
  expect({{"x", x}, {"x.lod0", Tensor({2, 1}, DType::kInt64)}},
         "\"x.lod0\": int64 [2, 1], expected offsets of int64 in one dim");
  expect({{"x", x}, {"x.lod0", Offsets({0, -3})}}, "\"x.lod0\": offset -3, expected at least 0");
  expect({{"x", x}, {"x.lod0", Offsets({0, 2, 1, 3})}},
         "offsets of \"x\": LoD level 0: offset 2 is 1 after 2: expected no less");
  expect({{"x", x}, {"x.lod0", Offsets({0, 2})}},
         "offsets of \"x\": LoD level 0 ends at 2: expected 3 (rows)");
  expect({{"x", x}, {"x.lod1", Offsets({0, 3})}},
         "\"x\" has 1 arrays of offsets, but \"x.lod0\" isn't among them");
  expect({{"x", x}, {"x.lod0", Offsets({0, 1})}, {"x.lod02", Offsets({0, 3})}},
         "\"x\" has 2 arrays of offsets, but \"x.lod1\" isn't among them");
  expect({{"y", x}, {"x.lod0", Offsets({0, 3})}},
         "\"x.lod0\" has the offsets of \"x\", which isn't there");
}

TEST(Npz, RefusesNamesThatMeanOffsets) {
  const TempDirectory directory;
  ExpectError(
      [&] {
        WriteNpz(directory / "a.npz", {{"x.lod0", Offsets({0, 3})}});
      },
      ErrorCode::kInvalidArgument,
      "tensor \"x.lod0\" would be read as offsets of \"x\": expected another name");
  EXPECT_TRUE(NamesIn(directory.path()).empty());
}

TEST(LoDEntries, AreNotTakenByATensorThatHasALoD) {
  TensorMap tensors = {{"x", WithLoD(Tensor({3}, DType::kFloat32), {{0, 1, 3}})},
                       {"x.lod0", Offsets({0, 2, 3})}};
  ExpectError([&] { TakeLoDEntries("file", &tensors); }, ErrorCode::kDataLoss,
              "file: \"x.lod0\" has the offsets of \"x\", which has a LoD already");
}

TEST(Npy, RefusesToWriteLoD) {
  const TempDirectory directory;
  const Tensor ragged = WithLoD(Tensor({3}, DType::kFloat32), {{0, 3}});
  ExpectError(
      [&] { WriteNpyFile(directory / "a.npy", ragged); }, ErrorCode::kFailedPrecondition,
      directory / "a.npy: a single array has no place for a LoD of 1 levels, expected none");
}

TEST(Npz, RepeatsItsBytes) {
  const TempDirectory directory;
  WriteNpz(directory / "a.npz", Samples());
  WriteNpz(directory / "b.npz", Samples());
  EXPECT_EQ(BytesOf(directory / "a.npz"), BytesOf(directory / "b.npz"));
}

TEST(Npz, RefusesTruncationAtEveryByte) {
  const TempDirectory directory;
  const TensorMap tensors = {{"x", Tensor::FromValues<int32_t>({2}, {1, 2})},
                             {"y", Tensor::FromValues<float>({40}, std::vector<float>(40))}};
  for (const bool compress : {false, true}) {
    WriteNpz(directory / "a.npz", tensors, compress);
    const std::string bytes = BytesOf(directory / "a.npz");
    for (size_t size = 0; size < bytes.size(); ++size) {
      SCOPED_TRACE(size);
      PutBytes(directory / "b.npz", bytes.substr(0, size));
      const Error error = ErrorOf([&] { ReadNpz(directory / "b.npz"); });
      EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
      EXPECT_EQ(std::string(error.what()).find(directory / "b.npz"), 0u) << error.what();
    }
  }
}

// Nothing that is compressed may take more memory than the archive's size excuses.
TEST(Npz, SurvivesAThousandMutations) {
  const TempDirectory directory;
  std::mt19937 random(4);
  int refused = 0;
  for (const bool compress : {false, true}) {
    WriteNpz(directory / "a.npz", Samples(), compress);
    const std::string bytes = BytesOf(directory / "a.npz");
    for (int i = 0; i < 500; ++i) {
      SCOPED_TRACE(i);
      PutBytes(directory / "b.npz", DamageBytes(bytes, &random));
      try {
        for (const auto& [name, tensor] : ReadNpz(directory / "b.npz")) {
          EXPECT_LE(tensor.byte_count(), 1 << 22);
        }
      } catch (const Error& error) {
        ++refused;
        EXPECT_TRUE(error.code() == ErrorCode::kDataLoss ||
                    error.code() == ErrorCode::kUnimplemented)
            << error.what();
      }
    }
  }
  EXPECT_GT(refused, 500);
}

TEST(Npz, RefusesNamesThatAreTwiceOrNoArrays) {
  const TempDirectory directory;
  const Tensor one = Tensor::FromValues<int32_t>({2}, {1, 2});
  WriteNpz(directory / "a.npz", {{"x", one}, {"y", one}});
  const std::string bytes = BytesOf(directory / "a.npz");
  const std::string path = directory / "b.npz";
  PutBytes(path, Replaced(bytes, "y.npy", "x.npy"));
  ExpectError([&] { ReadNpz(path); }, ErrorCode::kDataLoss, path + "(x.npy) is there twice");
  PutBytes(path, Replaced(bytes, "y.npy", "y.txt"));
  ExpectError([&] { ReadNpz(path); }, ErrorCode::kDataLoss,
              path +
                  ": entry \"y.txt\", expected a name in .npy; to leave it out, name the arrays "
                  "to read");
  PutBytes(path, Replaced(bytes, "(2,)", "(3,)"));
  const Error error = ErrorOf([&] { ReadNpz(path); });
  EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
  EXPECT_EQ(std::string(error.what())
                .find(path + "(x.npy), byte 128: elements of int32 [3]: "
                             "expected 12 bytes, found 8"),
            0u)
      << error.what();
}

// Whatever is wrong with what isn't asked for.
TEST(Npz, ReadsTheArraysThatAreNamedAndLooksAtNothingElse) {
  const TempDirectory directory;
  const Tensor one = Tensor::FromValues<int32_t>({2}, {1, 2});
  const std::string path = directory / "a.npz";
  WriteNpz(path, {{"x", one}, {"y", one}, {"z", Tensor({100}, DType::kInt8)}}, true);
  const std::string compressed = BytesOf(path);
  WriteNpz(path, {{"x", one}, {"y", one}});
  const std::string bytes = BytesOf(path);
  const auto read = [&](const std::vector<std::string>& names) {
    return ReadNpz(path, {.names = names});
  };
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"y.npy", "y.txt"}, {"y.npy", ".npyy"}, {"y.npy", "z.npy"}}) {
    PutBytes(path, Replaced(bytes, from, to));
    ExpectSame(read({"x"}), {{"x", one}});
    ExpectError(
        [&] {
          read({"x", "y"});
        },
        ErrorCode::kNotFound,
        path + " has no array \"y\", expected one of x" + (to == "z.npy" ? ", z" : ""));
  }
  // The first array may be read, the last not.
  PutArrays(path, {{"x", one}, {"y", Tensor({3}, DType::kUint8)}});
  PutBytes(path, Replaced(BytesOf(path), "|u1", "|S1"));
  ExpectError([&] { ReadNpz(path); }, ErrorCode::kUnimplemented,
              path +
                  "(y.npy): NumPy array of type \"|S1\" is not supported; to leave it out, name "
                  "the arrays to read");
  ExpectError([&] { read({"y"}); }, ErrorCode::kUnimplemented,
              path + "(y.npy): NumPy array of type \"|S1\" is not supported");
  ExpectSame(read({"x"}), {{"x", one}});
  EXPECT_TRUE(read({}).empty());
  // Nor does it count.
  PutBytes(path, compressed);
  const int64_t growth = one.byte_count() + 128;
  ExpectSame(ReadNpz(path, {.names = {{"x"}}, .limit_bytes = growth}), {{"x", one}});
  EXPECT_EQ(ErrorOf([&] { ReadNpz(path, {.limit_bytes = growth}); }).code(),
            ErrorCode::kOutOfRange);
}

TEST(Npz, ReadsTheOffsetsOfTheArraysThatAreNamed) {
  const TempDirectory directory;
  const std::string path = directory / "a.npz";
  const Tensor rows = Tensor::FromValues<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  const Tensor x = WithLoD(CopyToCpu(rows), {{0, 2, 2}, {0, 1, 3}});
  PutArrays(path, {{"x", rows},
                   {"x.lod0", Offsets({0, 2, 2})},
                   {"x.lod1", Offsets({0, 1, 3})},
                   {"y", rows},
                   {"y.lod0", Offsets({7})}});
  ExpectSame(ReadNpz(path, {.names = {{"x"}}}), {{"x", x}});
  ExpectError([&] { ReadNpz(path, {.names = {{"x.lod0"}}}); }, ErrorCode::kInvalidArgument,
              path + ": \"x.lod0\" has offsets and is read with its array: expected \"x\"");
}

TEST(Npz, LeavesTheOldFileOnAFullDisk) {
  const TempDirectory directory;
  WriteNpz(directory / "a.npz", Samples());
  WriteNpyFile(directory / "a.npy", Tensor({4}, DType::kFloat32));
  const std::string archive = BytesOf(directory / "a.npz");
  const std::string array = BytesOf(directory / "a.npy");
  const Tensor large({1 << 16}, DType::kFloat64);
  for (const rlim_t room : {rlim_t{0}, rlim_t{100}, rlim_t{100000}}) {
    SCOPED_TRACE(room);
    const Error npz = ErrorOf([&] {
      const FileSizeLimit limit(room);
      WriteNpz(directory / "a.npz", {{"large", large}});
    });
    EXPECT_EQ(npz.code(), ErrorCode::kResourceExhausted) << npz.what();
    EXPECT_EQ(std::string(npz.what()).find("write " + directory / "a.npz"), 0u) << npz.what();
    const Error npy = ErrorOf([&] {
      const FileSizeLimit limit(room);
      WriteNpyFile(directory / "a.npy", large);
    });
    EXPECT_EQ(npy.code(), ErrorCode::kResourceExhausted) << npy.what();
  }
  EXPECT_EQ(BytesOf(directory / "a.npz"), archive);
  EXPECT_EQ(BytesOf(directory / "a.npy"), array);
  EXPECT_EQ(NamesIn(directory.path()), (std::vector<std::string>{"a.npy", "a.npz"}));
}

TEST(Npz, NoticesEveryFlippedByteOfTheData) {
  const TempDirectory directory;
  WriteNpz(directory / "a.npz", {{"x", Tensor::FromValues<int32_t>({2}, {1, 2})}});
  const std::string bytes = BytesOf(directory / "a.npz");
  const size_t data = bytes.find(kInts);
  ASSERT_NE(data, std::string::npos);
  for (size_t i = 0; i < bytes.size(); ++i) {
    SCOPED_TRACE(i);
    std::string flipped = bytes;
    flipped[i] = static_cast<char>(flipped[i] ^ 0x55);
    PutBytes(directory / "b.npz", flipped);
    const auto read = [&] { ReadNpz(directory / "b.npz"); };
    if (i >= data && i < data + kInts.size()) {
      EXPECT_EQ(ErrorOf(read).code(), ErrorCode::kDataLoss);
      continue;
    }
    try {
      read();
    } catch (const Error&) {
    }
  }
}

TEST(Npz, RefusesMoreThanTheLimit) {
  const TempDirectory directory;
  WriteNpz(directory / "a.npz", Samples(), true);
  ExpectError([&] { ReadNpz(directory / "a.npz", {.limit_bytes = 1000}); }, ErrorCode::kOutOfRange,
              directory /
                  "a.npz would take more than 1000 bytes beyond those of the file, "
                  "uncompressed");
  // What isn't compressed is no larger than the file.
  WriteNpz(directory / "a.npz", Samples());
  ExpectSame(ReadNpz(directory / "a.npz", {.limit_bytes = 0}), Samples());
}

// Sets the compressed size (at 20) and the size (at 24) in each entry of the central directory.
std::string WithSizes(std::string bytes, std::optional<uint32_t> compressed, uint32_t size) {
  for (size_t at = 0; (at = bytes.find("PK\x01\x02", at)) != std::string::npos; at += 28) {
    if (compressed) std::memcpy(bytes.data() + at + 20, &*compressed, sizeof(*compressed));
    std::memcpy(bytes.data() + at + 24, &size, sizeof(size));
  }
  return bytes;
}

// Megabytes that claim to be gigabytes, below the ratio that deflate can reach.
TEST(Npz, RefusesByDefaultWhatWouldTakeAllMemory) {
  const TempDirectory directory;
  std::mt19937 random(1);
  std::vector<float> noise(1 << 20);
  for (float& value : noise) value = std::bit_cast<float>(static_cast<uint32_t>(random()));
  const Tensor tensor = Tensor::FromValues<float>({1 << 20}, noise);
  const std::string path = directory / "a.npz";
  WriteNpz(path, {{"x", tensor}, {"y", tensor}}, true);
  PutBytes(path, WithSizes(BytesOf(path), {}, 3u << 30));
  ExpectError([&] { ReadNpz(path); }, ErrorCode::kOutOfRange,
              path +
                  " would take more than 4294967296 bytes beyond those of the file, "
                  "uncompressed");
}

TEST(Npz, RefusesEntriesThatOverlap) {
  const TempDirectory directory;
  const std::string path = directory / "a.npz";
  WriteNpz(path, {{"x", Tensor::FromValues<int32_t>({2}, {1, 2})},
                  {"y", Tensor::FromValues<int32_t>({2}, {1, 2})}});
  const std::string bytes = BytesOf(path);
  const auto most = static_cast<uint32_t>(bytes.size() / 2 + 1);
  PutBytes(path, WithSizes(bytes, most, most));
  ExpectError([&] { ReadNpz(path); }, ErrorCode::kDataLoss,
              path + ": the entries take more bytes than the " + std::to_string(bytes.size()) +
                  " of the file");
}

TEST(Npz, CompressesNoMoreThanIsReadAgain) {
  const TempDirectory directory;
  const Tensor gigabyte({1 << 28}, DType::kFloat32);
  TensorMap tensors;
  for (const char* name : {"a", "b", "c", "d", "e"}) tensors.emplace(name, gigabyte);
  ExpectError([&] { WriteNpz(directory / "a.npz", tensors, true); }, ErrorCode::kOutOfRange,
              directory / "a.npz: more than 4294967296 bytes to compress: write them uncompressed");
  EXPECT_TRUE(NamesIn(directory.path()).empty());
}

TEST(Npz, RefusesWhatIsNoArchive) {
  const TempDirectory directory;
  const std::string path = directory / "a.npz";
  ExpectError([&] { ReadNpz(path); }, ErrorCode::kNotFound,
              "open " + path + ": No such file or directory");
  PutBytes(path, "no archive");
  ExpectError([&] { ReadNpz(path); }, ErrorCode::kDataLoss, path + ": Not a zip archive");
  PutBytes(path, "");
  ExpectError([&] { ReadNpz(path); }, ErrorCode::kDataLoss,
              path + " is empty, expected an archive");
}

TEST(Npz, RefusesToWriteWhatNumpyLacks) {
  const TempDirectory directory;
  const auto code_of = [&](const Tensor& tensor) {
    return ErrorOf([&] { WriteNpz(directory / "a.npz", {{"x", tensor}}); }).code();
  };
  EXPECT_EQ(code_of(Tensor({1}, DType::kBFloat16)), ErrorCode::kUnimplemented);
  EXPECT_EQ(code_of(Tensor()), ErrorCode::kFailedPrecondition);
  EXPECT_EQ(ErrorOf([&] { WriteNpz(directory / "no/a.npz", Samples()); }).code(), ErrorCode::kIo);
  EXPECT_TRUE(NamesIn(directory.path()).empty());
}

}  // namespace
}  // namespace skiff
