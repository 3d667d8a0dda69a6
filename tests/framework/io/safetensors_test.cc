#include "framework/io/safetensors.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <random>
#include <set>

#include "framework/io/safetensors_header.h"
#include "tests/framework/io/same_tensors.h"
#include "tests/harness/damage_bytes.h"
#include "tests/harness/full_disk.h"
#include "tests/harness/temp_directory.h"

namespace skiff {
namespace {

constexpr char kFixture[] = "tests/framework/io/safetensors_fixture.safetensors";
constexpr char kOddName[] = "a \"b\"\\\n/é";

std::string FileBytes(const std::string& header, const std::string& data = "") {
  std::string bytes;
  AppendNumber(uint64_t{header.size()}, &bytes);
  return bytes + header + data;
}

std::string Entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"dtype":")" + dtype + R"(","shape":[)" + shape + R"(],"data_offsets":[)" + offsets +
         "]}";
}

std::string Header(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"x":)" + Entry(dtype, shape, offsets) + "}";
}

Tensor Halves(DType dtype, const std::vector<int16_t>& bits) {
  Tensor tensor({static_cast<int64_t>(bits.size())}, dtype);
  std::memcpy(tensor.raw_data(), bits.data(), static_cast<size_t>(tensor.byte_count()));
  return tensor;
}

// What make_safetensors_fixture.py writes.
TensorMap FixtureTensors() {
  const float infinity = std::numeric_limits<float>::infinity();
  TensorMap tensors;
  tensors["bool"] = Tensor::FromValues<bool>({2}, {true, false});
  tensors["uint8"] = Tensor::FromValues<uint8_t>({1}, {200});
  tensors["int8"] = Tensor::FromValues<int8_t>({1, 2}, {-1, 2});
  tensors["int16"] = Tensor::FromValues<int16_t>({1}, {-300});
  tensors["int32"] = Tensor::FromValues<int32_t>({2, 1}, {1, -70000});
  tensors["int64"] = Tensor::FromValues<int64_t>({1}, {int64_t{1} << 40});
  tensors["float16"] = Halves(DType::kFloat16, {0x3e00, int16_t(0xc000), 0x7c00});
  tensors["bfloat16"] = Halves(DType::kBFloat16, {0x3fc0, int16_t(0xc000), 0x7f80});
  tensors["float32"] = Tensor::FromValues<float>({3}, {1.5f, -2, infinity});
  tensors["float64"] = Tensor::FromValues<double>({3}, {1.5, -2, infinity});
  tensors["scalar"] = Tensor::FromValues<float>({}, {0.25f});
  tensors["empty"] = Tensor({2, 0}, DType::kFloat32);
  tensors[kOddName] = Tensor::FromValues<int8_t>({1}, {7});
  return tensors;
}

// A tensor of each dtype. Each begins at a multiple of 64 bytes in a file.
TensorMap AlignedTensors() {
  TensorMap tensors;
  for (const DType dtype :
       {DType::kBool, DType::kUint8, DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64,
        DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    Tensor tensor({kBufferAlignment / SizeOf(dtype)}, dtype);
    auto* bytes = static_cast<uint8_t*>(tensor.raw_data());
    for (uint8_t i = 0; i < kBufferAlignment; ++i) bytes[i] = dtype == DType::kBool ? i % 2 : i;
    tensors.emplace(DTypeName(dtype), tensor);
  }
  tensors["empty"] = Tensor({2, 0}, DType::kFloat32);
  return tensors;
}

// A file without the spaces between header and elements.
struct Parts {
  std::string json;
  size_t spaces = 0;
  std::string data;

  bool operator==(const Parts& other) const { return json == other.json && data == other.data; }
};

Parts PartsOf(const std::string& bytes) {
  MemorySource source(bytes, "memory");
  std::string header =
      source.ReadString(static_cast<int64_t>(source.ReadNumber<uint64_t>("length")), "header");
  const size_t json_bytes = header.find_last_not_of(' ') + 1;
  return {.json = header.substr(0, json_bytes),
          .spaces = header.size() - json_bytes,
          .data = source.ReadString(source.remaining(), "data")};
}

// Returns the line of /proc/self/maps with the mapping that holds an address; empty if there is
// none.
std::string MappingOf(const void* address) {
  std::ifstream maps("/proc/self/maps");
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    std::sscanf(line.c_str(), "%zx-%zx", &begin, &end);
    if (begin <= wanted && wanted < end) return line;
  }
  return "";
}

class Safetensors : public testing::Test {
 protected:
  TensorMap Parse(const std::string& bytes) const {
    // Overwriting it would wait for the disk on some file systems.
    std::filesystem::remove(path);
    PutBytes(path, bytes);
    return ReadSafetensors(path);
  }
  ErrorCode CodeOf(const std::string& bytes) const {
    return ErrorOf([&] { Parse(bytes); }).code();
  }
  // The message begins with the path.
  void ExpectRefused(const std::string& bytes, ErrorCode code, const std::string& message) const {
    ExpectError([&] { Parse(bytes); }, code, path + message);
  }
  void ExpectCorrupt(const std::string& bytes, const std::string& message) const {
    ExpectRefused(bytes, ErrorCode::kDataLoss, message);
  }
  // Reads and maps what may be damaged: the same tensors, no larger than the file, or the same
  // Error, whose code this returns.
  std::optional<ErrorCode> RefusalOf(const std::string& bytes) const {
    std::optional<TensorMap> tensors;
    try {
      tensors = Parse(bytes);
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == ErrorCode::kDataLoss || error.code() == ErrorCode::kUnimplemented)
          << error.what();
      EXPECT_NE(std::string(error.what()).find(path), std::string::npos) << error.what();
      ExpectError([&] { MapSafetensors(path); }, error.code(), error.what());
      return error.code();
    }
    int64_t held = 0;
    for (const auto& [name, tensor] : *tensors) held += tensor.byte_count();
    EXPECT_LE(held, static_cast<int64_t>(bytes.size()));
    ExpectSame(MapSafetensors(path), *tensors);
    return std::nullopt;
  }
  // The path as the system writes it.
  std::string canonical_path() const { return std::filesystem::canonical(path).string(); }
  bool IsMapped(const Tensor& tensor) const {
    return MappingOf(tensor.raw_data()).find(canonical_path()) != std::string::npos;
  }
  // The fixture, and a file of which all tensors but bools can be mapped.
  std::vector<std::string> WholeFiles() const {
    WriteSafetensors(path, AlignedTensors());
    return {BytesOf(kFixture), BytesOf(path)};
  }

  TempDirectory directory;
  std::string path = directory / "a.safetensors";
};

TEST_F(Safetensors, ReadTheFilesOfTheLibrary) {
  ExpectSame(ReadSafetensors(kFixture), FixtureTensors());
  EXPECT_EQ(SafetensorsFile(kFixture).metadata(),
            (std::map<std::string, std::string>{{"format", "pt"}}));
}

// The library pads the header to a multiple of 8 bytes.
TEST_F(Safetensors, WriteTheJsonAndTheElementsOfTheLibrary) {
  WriteSafetensors(path, FixtureTensors(), {{"format", "pt"}});
  EXPECT_EQ(PartsOf(BytesOf(path)), PartsOf(BytesOf(kFixture)));
  WriteSafetensors(path, {});
  EXPECT_EQ(BytesOf(path), FileBytes("{}" + std::string(54, ' ')));
  EXPECT_EQ(NamesIn(directory.path()), std::vector<std::string>{"a.safetensors"});
}

TEST_F(Safetensors, RoundTripMetadata) {
  const std::map<std::string, std::string> metadata = {{"", ""}, {kOddName, "\t\x01"}, {"z", "é"}};
  WriteSafetensors(path, FixtureTensors(), metadata);
  EXPECT_EQ(SafetensorsFile(path).metadata(), metadata);
  ExpectSame(ReadSafetensors(path), FixtureTensors());
}

TEST_F(Safetensors, PadTheHeaderSoThatElementsAreAligned) {
  const Tensor bytes = Tensor::FromValues<int8_t>({2}, {1, 2});
  std::set<size_t> paddings;
  for (size_t length = 1; length <= 64; ++length) {
    SCOPED_TRACE(length);
    WriteSafetensors(path, {{std::string(length, 'x'), bytes}});
    const Parts parts = PartsOf(BytesOf(path));
    EXPECT_EQ((BytesOf(path).size() - parts.data.size()) % kBufferAlignment, 0u);
    EXPECT_EQ(parts.data, "\x01\x02");
    EXPECT_TRUE(paddings.insert(parts.spaces).second);
  }
  EXPECT_EQ(*paddings.rbegin(), 63u);
}

TEST_F(Safetensors, ReadWhatTheFormatAllows) {
  EXPECT_TRUE(Parse(FileBytes("{}")).empty());
  EXPECT_TRUE(Parse(FileBytes("{ \"__metadata__\" : {} } \n\t ")).empty());
  // Nothing demands that a tensor begins at a multiple of its element size.
  const std::string header =
      R"({"y":)" + Entry("I32", "1", "1,5") + R"(,"x":)" + Entry("U8", "1", "0,1") + "}";
  const TensorMap tensors = Parse(FileBytes(header, std::string("\x09\x01\0\0\0", 5)));
  EXPECT_EQ(tensors.at("x").Item<uint8_t>(), 9);
  EXPECT_EQ(tensors.at("y").Item<int32_t>(), 1);
}

TEST_F(Safetensors, ReadTensorsWithoutElementsBetweenOthers) {
  const std::string header = R"({"a":)" + Entry("I64", "0,5", "1,1") + R"(,"b":)" +
                             Entry("U8", "1", "1,2") + R"(,"c":)" + Entry("U8", "", "0,1") +
                             R"(,"d":)" + Entry("F32", "3,0", "2,2") + "}";
  const TensorMap tensors = Parse(FileBytes(header, "12"));
  EXPECT_EQ(tensors.at("a").shape(), Shape({0, 5}));
  EXPECT_EQ(tensors.at("b").Item<uint8_t>(), '2');
  EXPECT_EQ(tensors.at("c").shape(), Shape());
  EXPECT_EQ(tensors.at("d").shape(), Shape({3, 0}));
}

// As the format's own library does.
TEST_F(Safetensors, DoNotLookAtWhatTheFormatDoesNotName) {
  EXPECT_TRUE(Parse(FileBytes(" \n{\"__metadata__\":null}")).empty());
  EXPECT_TRUE(SafetensorsFile(path).metadata().empty());
  const std::string deep = std::string(124, '[') + std::string(124, ']');
  for (const std::string& extra :
       {std::string("1"), std::string("null"), std::string(R"([{"dtype":1,"dtype":2}])"), deep}) {
    SCOPED_TRACE(extra);
    const std::string header = R"({"x":{"note":)" + extra + R"(,"dtype":"U8","shape":[2],"note":)" +
                               extra + R"(,"data_offsets":[0,2]}})";
    ExpectSame(Parse(FileBytes(header, "\x08\x09")),
               {{"x", Tensor::FromValues<uint8_t>({2}, {8, 9})}});
  }
  ExpectCorrupt(FileBytes(R"({"x":{"shape":[0],"data_offsets":[0,0],"note":1}})"),
                R"(: tensor "x": found {"data_offsets":[0,0],"shape":[0]}, )"
                "expected dtype, shape and data_offsets");
}

TEST_F(Safetensors, ReadAndMapTheTensorsThatAreNamed) {
  const std::string header =
      R"({"y":)" + Entry("U8", "2", "0,2") + R"(,"z":)" + Entry("U32", "1", "2,6") + "}";
  const std::string refused =
      path + ": tensor \"z\": dtype U32 is not supported; to leave it out, name the arrays to read";
  ExpectError([&] { Parse(FileBytes(header, "\x08\x09____")); }, ErrorCode::kUnimplemented,
              refused);
  ExpectError([&] { MapSafetensors(path); }, ErrorCode::kUnimplemented, refused);
  const TensorMap expected = {{"y", Tensor::FromValues<uint8_t>({2}, {8, 9})}};
  ExpectSame(ReadSafetensors(path, {{"y"}}), expected);
  ExpectSame(MapSafetensors(path, {{"y"}}), expected);
  EXPECT_TRUE(ReadSafetensors(path, ArrayNames(std::in_place)).empty());
  ExpectError([&] { ReadSafetensors(path, {{"w"}}); }, ErrorCode::kNotFound,
              path + " has no tensor \"w\"");
}

// The other two could not be read.
TEST_F(Safetensors, ReadOneTensorAndNoOther) {
  const std::string header = R"({"x":)" + Entry("BOOL", "1", "0,1") + R"(,"y":)" +
                             Entry("U8", "2", "1,3") + R"(,"z":)" + Entry("F8_E4M3", "1", "3,4") +
                             "}";
  PutBytes(path, FileBytes(header, "\x07\x08\x09\x0a"));
  SafetensorsFile file(path);
  EXPECT_EQ(file.names(), (std::vector<std::string>{"x", "y", "z"}));
  EXPECT_TRUE(file.Contains("z"));
  EXPECT_FALSE(file.Contains("w"));
  EXPECT_EQ(file.Read("y").ToVector<uint8_t>(), (std::vector<uint8_t>{8, 9}));
  ExpectError([&] { file.Read("x"); }, ErrorCode::kDataLoss,
              "tensor \"x\": " + path + ", byte " + std::to_string(8 + header.size()) +
                  ": bool of value 7, expected 0 or 1");
  ExpectError([&] { file.Read("z"); }, ErrorCode::kUnimplemented,
              path + ": tensor \"z\": dtype F8_E4M3 is not supported");
  ExpectError([&] { file.Read("w"); }, ErrorCode::kNotFound, path + " has no tensor \"w\"");
  EXPECT_EQ(file.Read("y").ToVector<uint8_t>(), (std::vector<uint8_t>{8, 9}));
}

TEST_F(Safetensors, NoticeAFileThatShrinks) {
  WriteSafetensors(path, {{"x", Tensor::FromValues<int8_t>({4}, {1, 2, 3, 4})}});
  SafetensorsFile file(path);
  std::filesystem::resize_file(path, BytesOf(path).size() - 1);
  EXPECT_EQ(ErrorOf([&] { file.Read("x"); }).code(), ErrorCode::kDataLoss);
  EXPECT_EQ(ErrorOf([&] { file.Map("x"); }).code(), ErrorCode::kDataLoss);
}

TEST_F(Safetensors, MapWhatTheyRead) {
  WriteSafetensors(path, AlignedTensors());
  const TensorMap mapped = MapSafetensors(path);
  ExpectSame(mapped, AlignedTensors());
  for (const auto& [name, tensor] : mapped) {
    SCOPED_TRACE(name);
    EXPECT_EQ(IsMapped(tensor), name != "bool" && name != "empty");
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.raw_data()) % kBufferAlignment, 0u);
    EXPECT_EQ(tensor.buffer()->bytes(), tensor.byte_count());
  }
  // Also bools that are wrong.
  std::string bytes = BytesOf(path);
  bytes.back() = 7;
  PutBytes(path, bytes);
  ExpectError([&] { MapSafetensors(path); }, ErrorCode::kDataLoss,
              "tensor \"bool\": " + path + ", byte " + std::to_string(bytes.size() - 1) +
                  ": bool of value 7, expected 0 or 1");
}

TEST_F(Safetensors, ReadWhatIsNotAlignedWhenMapped) {
  // 12 bytes, which the others follow.
  const TensorMap tensors = {{"a", Tensor::FromValues<float>({3}, {1, 2, 3})},
                             {"b", Tensor::FromValues<float>({2}, {4, 5})}};
  WriteSafetensors(path, tensors);
  const TensorMap mapped = MapSafetensors(path);
  ExpectSame(mapped, tensors);
  EXPECT_TRUE(IsMapped(mapped.at("a")));
  EXPECT_TRUE(IsMapped(mapped.at("b")));
  // Elements at an odd place.
  Parts parts = PartsOf(BytesOf(path));
  if (parts.json.size() % 2 == 0) parts.json += " ";
  PutBytes(path, FileBytes(parts.json, parts.data));
  const TensorMap shifted = MapSafetensors(path);
  ExpectSame(shifted, tensors);
  EXPECT_FALSE(IsMapped(shifted.at("a")));
  // A file of the library, whose elements begin at a multiple of 8.
  ExpectSame(MapSafetensors(kFixture), FixtureTensors());
}

TEST_F(Safetensors, KeepWritesToMappedTensorsToThemselves) {
  WriteSafetensors(path, AlignedTensors());
  const std::string before = BytesOf(path);
  SafetensorsFile file(path);
  SafetensorsFile other(path);
  Tensor written = file.Map("float32");
  const Tensor elsewhere = other.Map("float32");
  written.data<float>()[3] = -9;
  EXPECT_EQ(file.Map("float32").data<float>()[3], -9);
  ExpectSame({{"", file.Read("float32")}}, {{"", AlignedTensors()["float32"]}});
  ExpectSame({{"", elsewhere}}, {{"", AlignedTensors()["float32"]}});
  EXPECT_EQ(BytesOf(path), before);
}

TEST_F(Safetensors, StayMappedAsLongAsTheirTensors) {
  WriteSafetensors(path, AlignedTensors());
  const auto map = [&] { return SafetensorsFile(path).Map("int64"); };
  {
    const Tensor rows = map().Rows(1, 8);
    EXPECT_TRUE(IsMapped(rows));
    ExpectSame({{"", rows}}, {{"", AlignedTensors()["int64"].Rows(1, 8)}});
  }
  EXPECT_EQ(BytesOf("/proc/self/maps").find(canonical_path()), std::string::npos);
}

TEST_F(Safetensors, KeepTheOldValuesOfAFileThatIsReplaced) {
  WriteSafetensors(path, AlignedTensors());
  const TensorMap mapped = MapSafetensors(path);
  WriteSafetensors(path, {{"x", Tensor::FromValues<float>({1}, {1})}});
  ExpectSame(mapped, AlignedTensors());
  EXPECT_EQ(MapSafetensors(path).at("x").Item<float>(), 1);
  // Also by themselves.
  WriteSafetensors(path, mapped);
  ExpectSame(MapSafetensors(path), AlignedTensors());
}

TEST_F(Safetensors, RefuseTruncationAtEveryByte) {
  for (const std::string& bytes : WholeFiles()) {
    for (size_t size = 0; size < bytes.size(); ++size) {
      SCOPED_TRACE(size);
      EXPECT_EQ(RefusalOf(bytes.substr(0, size)), ErrorCode::kDataLoss);
    }
    EXPECT_EQ(RefusalOf(bytes + "x"), ErrorCode::kDataLoss);
  }
}

TEST_F(Safetensors, SurviveEveryFlippedByte) {
  for (const std::string& bytes : WholeFiles()) {
    int refused = 0;
    for (size_t i = 0; i < bytes.size(); ++i) {
      for (const int flips : {1 << i % 8, 255}) {
        SCOPED_TRACE(testing::Message() << "byte " << i << ", bits " << flips);
        std::string flipped = bytes;
        flipped[i] = static_cast<char>(flipped[i] ^ flips);
        refused += RefusalOf(flipped) ? 1 : 0;
      }
    }
    EXPECT_GT(refused, 1000);
  }
}

TEST_F(Safetensors, SurviveEveryFlippedBitOfTheHeader) {
  const std::string bytes = BytesOf(kFixture);
  int refused = 0;
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    SCOPED_TRACE(bit);
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    try {
      MemorySource source(flipped, "memory");
      ReadSafetensorsHeader(&source);
    } catch (const Error& error) {
      ++refused;
      EXPECT_EQ(error.code(), ErrorCode::kDataLoss) << error.what();
      EXPECT_EQ(std::string(error.what()).find("memory"), 0u) << error.what();
    }
  }
  EXPECT_GT(refused, 3000);
}

TEST_F(Safetensors, SurviveMutations) {
  for (const std::string& bytes : WholeFiles()) {
    std::mt19937 random(5);
    int refused = 0;
    for (int i = 0; i < 300; ++i) {
      SCOPED_TRACE(i);
      refused += RefusalOf(DamageBytes(bytes, &random)) ? 1 : 0;
    }
    EXPECT_GT(refused, 200);
  }
}

TEST_F(Safetensors, SayWhereTheFileIsCorrupt) {
  ExpectCorrupt("1234567", ", byte 0: length of the header: expected 8 bytes, found 7");
  ExpectCorrupt(std::string(7, '\0') + "\x80",
                ", byte 0: header of 9223372036854775808 bytes, expected at most 100000000");
  ExpectCorrupt(std::string("\x01\xe1\xf5\x05\0\0\0\0", 8),
                ", byte 0: header of 100000001 bytes, expected at most 100000000");
  ExpectCorrupt(std::string("\x03\0\0\0\0\0\0\0{}", 10),
                ", byte 8: header: expected 3 bytes, found 2");
  ExpectCorrupt(FileBytes(""), ", byte 8: header: expected '{'");
  ExpectCorrupt(FileBytes(" []"), ", byte 9: header: expected '{'");
  ExpectCorrupt(FileBytes("{} x"), ": header: byte 3: expected JSON");
  ExpectCorrupt(FileBytes(std::string("{}\0x", 4)), ": header: byte 2: expected JSON");
  ExpectCorrupt(FileBytes(R"({"x":1e999})"), ": header: a number that no type holds");
  ExpectCorrupt(FileBytes(R"({"x":{"a":)" + std::string(126, '[') + std::string(126, ']') + "}}"),
                ": header: JSON nested deeper than 127 levels");
}

TEST_F(Safetensors, SayWhichTensorIsWrong) {
  const auto expect = [&](const std::string& header, const std::string& data,
                          const std::string& message) {
    ExpectCorrupt(FileBytes(header, data), ": tensor \"x\"" + message);
  };
  expect(Header("F32", "2", "0,9"), "12345678",
         ": data_offsets [0, 9], expected a range within the 8 bytes of elements");
  expect(Header("F32", "2", "8,0"), "12345678",
         ": data_offsets [8, 0], expected a range within the 8 bytes of elements");
  expect(Header("F32", "3", "0,8"), "12345678", ": F32 [3] takes 12 bytes, found 8");
  expect(Header("U8", "2", "1,3"), "123",
         " begins at offset 1, expected 0, where the one before it ends");
  expect(Header("U8", "9223372036854775807,9223372036854775807", "0,1"), "1",
         ": shape [9223372036854775807, 9223372036854775807] has more than 281474976710656 "
         "elements, a dim of 0 counted as 1");
  expect(Header("U8", "-1", "0,1"), "1", ": shape: found -1, expected a count");
  expect(Header("U8", "1", "0"), "1", ": 1 data_offsets, expected 2");
  expect(R"({"x":[]})", "", ": found [], expected dtype, shape and data_offsets");
  ExpectCorrupt(FileBytes(Header("U8", "1", "0,1"), "12"),
                ": the tensors end at offset 1, expected 2, where the file ends");
  ExpectCorrupt(FileBytes(R"({"__metadata__":{"a":1}})"),
                ": __metadata__: \"a\": found 1, expected a string");
  ExpectCorrupt(FileBytes(R"({"__metadata__":[]})"),
                ": __metadata__: found [], expected an object of strings");
}

// Also names that are equal only once they are decoded.
TEST_F(Safetensors, RefuseKeysThatAreThereTwice) {
  const std::string entry = Entry("U8", "0", "0,0");
  ExpectCorrupt(FileBytes(R"({"x":)" + entry + R"(,"x":)" + entry + "}"),
                ": header: \"x\" is there twice");
  ExpectCorrupt(FileBytes(R"({"x":)" + entry + R"(,"\u0078":)" + entry + "}"),
                ": header: \"x\" is there twice");
  ExpectCorrupt(FileBytes(R"({"x":{"dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0]}})"),
                ": header: \"dtype\" is there twice");
  ExpectCorrupt(FileBytes(R"({"__metadata__":{"a":"1","b":"2","a":"1"}})"),
                ": header: \"a\" is there twice");
  ExpectCorrupt(FileBytes(R"({"__metadata__":{},"__metadata__":{}})"),
                ": header: \"__metadata__\" is there twice");
  EXPECT_EQ(Parse(FileBytes(R"({"x":)" + entry + R"(,"dtype":)" + entry + "}")).size(), 2u);
}

TEST_F(Safetensors, RefuseOverlapsAndGaps) {
  const auto code_of = [&](const std::string& first, const std::string& second) {
    return CodeOf(FileBytes(
        R"({"x":)" + Entry("U8", "2", first) + R"(,"y":)" + Entry("U8", "2", second) + "}",
        "12345"));
  };
  EXPECT_EQ(code_of("0,2", "1,3"), ErrorCode::kDataLoss);
  EXPECT_EQ(code_of("0,2", "0,2"), ErrorCode::kDataLoss);
  EXPECT_EQ(code_of("0,2", "3,5"), ErrorCode::kDataLoss);
  EXPECT_EQ(code_of("0,2", "2,4"), ErrorCode::kDataLoss);
  EXPECT_EQ(code_of("3,5", "1,3"), ErrorCode::kDataLoss);
  // One without elements in the middle of another.
  const std::string header =
      R"({"x":)" + Entry("U8", "2", "0,2") + R"(,"y":)" + Entry("U8", "0", "1,1") + "}";
  ExpectCorrupt(FileBytes(header, "12"),
                ": tensor \"y\" begins at offset 1, expected 2, where the one before it ends");
}

TEST_F(Safetensors, RefuseMalformedHeaders) {
  const std::string deep(1 << 20, '[');
  const std::vector<std::string> headers = {
      "{",
      "}",
      "[]",
      "{}{}",
      "{},",
      "{}}",
      "\xef\xbb\xbf{}",
      "{/**/}",
      "{\"x\"}",
      "{\"x\":}",
      "{'x':{}}",
      "{\"x\":" + deep,
      "{\"x\":" + deep + std::string(deep.size(), ']') + "}",
      "{" + Header("U8", "4", "0,4"),
      Header("U8", "4", "0,4").substr(1),
      Header("U8", "4,", "0,4"),
      Header("U8", "4", "0,4,"),
      Header("U8", "4", "0,4,4"),
      Header("U8", "4", ""),
      Header("U8", "4", "0,04"),
      Header("U8", "4", "0,4.0"),
      Header("U8", "4", "0,4e0"),
      Header("U8", "4", "0,+4"),
      Header("U8", "4", "-0,4"),
      Header("U8", "4", "\"0\",4"),
      Header("U8", "4", "null,4"),
      Header("U8", "4", "0,18446744073709551616"),
      Header("U8", "4", "0,18446744073709551615"),
      Header("U8", "4", "9223372036854775808,4"),
      Header("U8", "4", "18446744073709551612,4"),
      Header("U8", "4.0", "0,4"),
      Header("U8", "true", "0,4"),
      Header("U8", "[4]", "0,4"),
      Header("U8", "{}", "0,4"),
      Header("U8", "-4", "0,4"),
      Header("U8", "-2,-2", "0,4"),
      Header("U8", "18446744073709551612", "0,4"),
      Header("F32", "4611686018427387905", "0,4"),
      Header("U8", "4294967296,4294967296,4", "0,4"),
      Header("U8", "9223372036854775807,2,0", "0,4"),
      R"({"x":{"dtype":"U8","shape":[4]}})",
      R"({"x":{"dtype":"U8","data_offsets":[0,4]}})",
      R"({"x":{"shape":[4],"data_offsets":[0,4]}})",
      R"({"x":{"dtype":1,"shape":[4],"data_offsets":[0,4]}})",
      R"({"x":{"dtype":"U8","shape":4,"data_offsets":[0,4]}})",
      R"({"x":{"dtype":"U8","shape":{},"data_offsets":[0,4]}})",
      R"({"x":{"dtype":"U8","shape":[4],"data_offsets":{"0":0,"1":4}}})",
      R"({"x":{"dtype":"U8","shape":[4],"data_offsets":null}})",
      R"({"x":"U8"})",
      R"({"x":null})",
      R"({"__metadata__":[]})",
      R"({"__metadata__":"a"})",
      R"({"__metadata__":{"a":null}})",
      R"({"__metadata__":{"a":{}}})",
      R"({"__metadata__":{"a":"\ud800"}})",
      R"({"__metadata__":{"a":"\x41"}})",
      "{\"__metadata__\":{\"a\":\"\n\"}}",
      "{\"__metadata__\":{\"a\":\"\xff\"}}",
      "{\"__metadata__\":{\"a\":\"\xc0\xaf\"}}",
      "{\"__metadata__\":{\"a\":\"\xed\xa0\x80\"}}",
      "{\"__metadata__\":{\"\xe9\":\"\"}}",
  };
  for (const std::string& header : headers) {
    SCOPED_TRACE(header.substr(0, 100));
    EXPECT_EQ(CodeOf(FileBytes(header, "1234")), ErrorCode::kDataLoss);
  }
}

TEST_F(Safetensors, RefuseWhatSkiffDoesNotHave) {
  const std::string advice = "; to leave it out, name the arrays to read";
  for (const char* dtype : {"F8_E5M2", "F4", "U16", "U32", "U64", "C64", "f32", ""}) {
    SCOPED_TRACE(dtype);
    ExpectRefused(FileBytes(Header(dtype, "1", "0,1"), "1"), ErrorCode::kUnimplemented,
                  StrCat(": tensor \"x\": dtype ", dtype, " is not supported", advice));
  }
  ExpectRefused(FileBytes(Header("U8", "1,1,1,1,1,1,1,1,1,1", "0,1"), "1"),
                ErrorCode::kUnimplemented,
                ": tensor \"x\" has rank 10, expected at most 9" + advice);
}

TEST_F(Safetensors, RefuseWhatIsNoFile) {
  ExpectError([&] { ReadSafetensors(path); }, ErrorCode::kNotFound,
              "open " + path + ": No such file or directory");
  ExpectError([&] { ReadSafetensors(directory.path()); }, ErrorCode::kIo,
              "open " + directory.path() + ": expected a regular file");
}

TEST_F(Safetensors, RefuseToWriteWhatTheFormatLacks) {
  const Tensor one = Tensor::FromValues<int8_t>({1}, {1});
  const auto expect = [&](const TensorMap& tensors,
                          const std::map<std::string, std::string>& metadata, ErrorCode code,
                          const std::string& message) {
    ExpectError([&] { WriteSafetensors(path, tensors, metadata); }, code, message);
  };
  expect({{"x", one}, {"y", Tensor()}}, {}, ErrorCode::kFailedPrecondition,
         path + ": tensor \"y\" can't be saved: expected storage of plain layout");
  Tensor ragged({3, 2}, DType::kFloat32);
  ragged.set_lod({{0, 2, 3}});
  expect({{"x", ragged}}, {}, ErrorCode::kFailedPrecondition,
         path +
             ": tensor \"x\" has a LoD of 1 levels, for which the format has no place: expected "
             "none");
  const Tensor blocked({1, 3, 2, 2}, DType::kFloat32, Place::Cpu(), Layout::Blocked(8));
  expect({{"x", blocked}}, {}, ErrorCode::kFailedPrecondition,
         path + ": tensor \"x\" can't be saved: expected storage of plain layout");
  expect({{"__metadata__", one}}, {}, ErrorCode::kInvalidArgument,
         "a tensor can't be named \"__metadata__\", where the format has metadata");
  expect({{"\xe9", one}}, {}, ErrorCode::kInvalidArgument, "\"\xe9\" isn't UTF-8");
  expect({}, {{"a", "\xff"}}, ErrorCode::kInvalidArgument, "\"\xff\" isn't UTF-8");
  EXPECT_TRUE(NamesIn(directory.path()).empty());
}

TEST_F(Safetensors, RefuseToWriteALongerHeaderThanIsRead) {
  ExpectError(
      [&] {
        WriteSafetensors(path, {}, {{"a", std::string(100'000'000, 'x')}});
      },
      ErrorCode::kOutOfRange, "a header of 100000056 bytes, expected at most 100000000");
}

TEST_F(Safetensors, LeaveTheOldFileOnAFullDisk) {
  WriteSafetensors(path, FixtureTensors());
  const std::string before = BytesOf(path);
  const Tensor large({1 << 16}, DType::kFloat64);
  for (const rlim_t room : {rlim_t{0}, rlim_t{40}, rlim_t{100000}}) {
    SCOPED_TRACE(room);
    const Error error = ErrorOf([&] {
      const FileSizeLimit limit(room);
      WriteSafetensors(path, {{"large", large}});
    });
    EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted) << error.what();
    EXPECT_EQ(std::string(error.what()).find("write " + path), 0u) << error.what();
  }
  EXPECT_EQ(BytesOf(path), before);
  EXPECT_EQ(NamesIn(directory.path()), std::vector<std::string>{"a.safetensors"});
}

TEST(IsSafetensorsPath, LooksAtTheEnding) {
  EXPECT_TRUE(IsSafetensorsPath("a/b.safetensors"));
  EXPECT_FALSE(IsSafetensorsPath("a.safetensors/b"));
  EXPECT_FALSE(IsSafetensorsPath("safetensors"));
}

}  // namespace
}  // namespace skiff
