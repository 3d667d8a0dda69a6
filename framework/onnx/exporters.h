// The exporters: for each type of op, the function that writes the op into a graph.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "framework/onnx/op_export.h"

namespace skiff::onnx_export {

struct ExporterEntry {
  Exporter run = nullptr;
  // The op moves values and computes nothing, so half stays half.
  bool keeps_half = false;
};

class ExporterTable {
 public:
  // Returns the table of all ops.
  static const ExporterTable& All();

  void Add(const std::string& type, Exporter run) { entries_[type] = {run, false}; }
  void AddMover(const std::string& type, Exporter run) { entries_[type] = {run, true}; }
  // Returns nullptr for an op without an exporter.
  const ExporterEntry* Find(std::string_view type) const;
  const std::map<std::string, ExporterEntry, std::less<>>& entries() const { return entries_; }

 private:
  std::map<std::string, ExporterEntry, std::less<>> entries_;
};

// Each adds the ops of a family.
void AddUnaryExporters(ExporterTable* table);
void AddBinaryExporters(ExporterTable* table);
void AddShapeExporters(ExporterTable* table);
void AddSliceExporters(ExporterTable* table);
void AddFillExporters(ExporterTable* table);
void AddIndexExporters(ExporterTable* table);
void AddReductionExporters(ExporterTable* table);
void AddProductExporters(ExporterTable* table);
void AddNormalizationExporters(ExporterTable* table);
void AddConvolutionExporters(ExporterTable* table);
void AddPoolingExporters(ExporterTable* table);
void AddImageExporters(ExporterTable* table);
void AddAttentionExporters(ExporterTable* table);
void AddRecurrentExporters(ExporterTable* table);
void AddSequenceExporters(ExporterTable* table);
void AddRaggedRecurrentExporters(ExporterTable* table);
void AddArrayExporters(ExporterTable* table);
void AddControlExporters(ExporterTable* table);

}  // namespace skiff::onnx_export
