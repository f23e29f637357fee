// Finds the variables of a CTranslate2 model as tensors under the names of transformers: fused matrices are split into
// their rows, aliases become what they name. Used on one thread; borrows the file that was parsed, and its bytes.
#pragma once

#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foreign/ct2_file.h"
#include "foreign/ct2_sizes.h"
#include "weights/found_tensors.h"

namespace transept {

// What transformers calls the modules of a layer. "": the layer has no such module.
struct Ct2LayerNames {
  std::string q, k, v, out, self_norm;
  std::string cross_q, cross_k, cross_v, cross_out, cross_norm;
  std::string up, gate, down, ffn_norm;

  // Of BART and its like, the layer "model.encoder.layers.3".
  static Ct2LayerNames bart(const std::string& prefix, bool is_decoder);
};

class Ct2Tensors final {
 public:
  // model: for messages, "T5". has_biases: of matrices.
  Ct2Tensors(const Ct2File& file, std::string model, bool has_biases)
      : file_(file), model_(std::move(model)), has_biases_(has_biases) {}

  // Errors of all: the variable is missing, or has another rank or type; its rows are no equal parts.

  // The matrix and bias of SCOPE/weight and SCOPE/bias as those of `modules`, each of as many rows. A bias of a module
  // that is called "..k_proj" is left out with `keys_have_bias` false: attention is the same with any.
  Status linear(std::string_view scope, const std::vector<std::string>& modules, bool keys_have_bias = true);
  // SCOPE/gamma, and SCOPE/beta where it is.
  Status norm(std::string_view scope, const std::string& module);
  // A variable under another name.
  Status tensor(std::string_view variable, const std::string& name);
  // The table SCOPE/weight. is_longer: the model has one row more, of zeros.
  Status table(std::string_view scope, const std::string& name, bool is_longer);
  // A table with rows of zeros before its own.
  Status shifted_table(std::string_view variable, const std::string& name, int64_t num_zeros);
  // The bias of the output layer, [1, rows]. is_longer: the model has one output more, which never is.
  Status output_bias(std::string_view variable, const std::string& name, bool is_longer);
  // The layer "encoder/layer_3". Errors also: scores that are scaled otherwise than by `queries_scale`.
  Status layer(std::string_view scope, const Ct2LayerNames& names, double queries_scale, bool keys_have_bias);
  // All layers of the side "encoder" or "decoder" as BART's relatives, Whisper among them, call them.
  Status bart_layers(const std::string& side, const Ct2Sizes& sizes, bool keys_have_bias);

  // Call for variables that have no place among the tensors and change nothing that the caller does not know.
  void ignore(std::string_view variable);

  // Once. Errors: a variable that no such model has, or a scalar that asks for what is not computed.
  StatusOr<FoundTensors> finish(std::unique_ptr<MmapFile> file) &&;

 private:
  StatusOr<const Ct2File::Variable*> take(std::string_view name, size_t rank);
  Status floats_only(const Ct2File::Variable& variable) const;
  // Rows [begin, begin + count) of it.
  void add(const Ct2File::Variable& variable, const std::string& name, int64_t begin, int64_t count);
  Status matrix(std::string_view name, const std::vector<std::string>& modules);
  Status scales(const Ct2File::Variable& matrix, const std::vector<std::string>& modules);

  const Ct2File& file_;
  std::string model_;
  bool has_biases_;
  std::set<std::string_view> taken_;  // variables' own names
  std::set<std::string, std::less<>> longer_;
  std::set<std::string_view> types_;  // of codes
  FoundTensors found_;
};

}  // namespace transept
