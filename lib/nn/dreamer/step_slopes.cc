#include "lib/nn/dreamer/step_slopes.h"

#include "lib/nn/dreamer/layer_nodes.h"

namespace tetrion {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

constexpr char kKept[] = "steps";

// x [N, G in] -> [G, N, in].
Tensor Blocks(const Tensor& x, std::int64_t blocks) {
  return x.reshape({x.size(0), blocks, -1}).transpose(0, 1);
}

Tensor WeightSlope(const Tensor& x, const Tensor& shared, const Tensor& slope,
                   const Tensor& weight) {
  if (weight.dim() == 2) return slope.t().mm(x);
  const Tensor of_blocks = Blocks(slope, weight.size(0));  // [G, N, out]
  const Tensor own = torch::bmm(Blocks(x, weight.size(0)).transpose(1, 2), of_blocks);
  if (!shared.defined()) return own;
  return torch::cat({own, torch::matmul(shared.t(), of_blocks)}, 1);
}

// The parameters, and an anchor that all steps' nodes depend on.
class GatherNode : public Function<GatherNode> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& weight,
                        const std::optional<Tensor>& bias, const std::optional<Tensor>& /*scale*/,
                        const KeptStepsPointer& kept, bool plain) {
    context->set_materialize_grads(false);
    context->save_for_backward({weight});
    context->saved_data["plain"] = plain;
    context->saved_data["bias"] = bias.has_value();
    Keep(context, kept);
    return torch::empty({0}, weight.options());
  }

  static variable_list backward(AutogradContext* context, const variable_list&) {
    const KeptStepsPointer kept = KeptOf(context);
    const Tensor weight = context->get_saved_variables()[0];
    Tensor grad_weight, grad_bias, grad_scale;
    if (!kept->slopes.empty()) {
      const Tensor x = torch::cat(kept->inputs), slope = torch::cat(kept->slopes);
      const Tensor shared = kept->shared.empty() ? Tensor() : torch::cat(kept->shared);
      const bool plain = context->saved_data["plain"].toBool();
      grad_weight = plain ? PlainWeightSlope(x, shared, slope, weight)
                          : WeightSlope(x, shared, slope, weight);
      if (context->saved_data["bias"].toBool()) {
        grad_bias = plain ? SumOfRows(slope) : slope.sum(0);
      }
    }
    if (!kept->scales.empty()) grad_scale = torch::cat(kept->scales).sum(0);
    *kept = KeptSteps();
    return {grad_weight, grad_bias, grad_scale, Tensor(), Tensor()};
  }
};

class StepLinearNode : public Function<StepLinearNode> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight,
                        const std::optional<Tensor>& bias, const Tensor& /*anchor*/,
                        const KeptStepsPointer& kept) {
    context->save_for_backward({x, weight});
    Keep(context, kept);
    return torch::linear(x, weight, bias);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const KeptStepsPointer kept = KeptOf(context);
    kept->inputs.push_back(saved[0].detach());
    kept->slopes.push_back(gradients[0]);
    return {gradients[0].mm(saved[1]), Tensor(), Tensor(), Tensor(), Tensor()};
  }
};

class StepBlockNode : public Function<StepBlockNode> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x,
                        const std::optional<Tensor>& given_shared, const Tensor& weight,
                        const Tensor& bias, const Tensor& /*anchor*/,
                        const KeptStepsPointer& kept) {
    const Tensor shared = given_shared.value_or(Tensor());
    context->save_for_backward({x, shared, weight});
    Keep(context, kept);
    return BlockProduct(x, shared, weight) + bias;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const Tensor &x = saved[0], &shared = saved[1], &weight = saved[2];
    const Tensor back = weight.transpose(1, 2);  // [G, out, in + X]
    const Tensor slope = Blocks(gradients[0], weight.size(0));
    const std::int64_t in = x.size(1) / weight.size(0);
    const KeptStepsPointer kept = KeptOf(context);
    kept->inputs.push_back(x.detach());
    kept->slopes.push_back(gradients[0]);
    Tensor grad_shared;
    if (shared.defined()) {
      kept->shared.push_back(shared.detach());
      grad_shared = torch::bmm(slope, back.narrow(2, in, shared.size(1))).sum(0);
    }
    const Tensor grad_x = torch::bmm(slope, back.narrow(2, 0, in)).transpose(0, 1);
    return {grad_x.reshape(x.sizes()), grad_shared, Tensor(), Tensor(), Tensor(), Tensor()};
  }
};

}  // namespace

StepSlopes::StepSlopes(const Tensor& weight, const Tensor& bias, const Tensor& scale, bool plain) {
  if (!torch::GradMode::is_enabled() || !weight.requires_grad()) return;
  kept_ = c10::make_intrusive<KeptSteps>();
  anchor_ = GatherNode::apply(weight, Optional(bias), Optional(scale), kept_, plain);
}

std::optional<Tensor> Optional(const Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

void Keep(AutogradContext* context, const KeptStepsPointer& kept) {
  if (kept != nullptr) context->saved_data[kKept] = c10::IValue::make_capsule(kept);
}

KeptStepsPointer KeptOf(AutogradContext* context) {
  const auto found = context->saved_data.find(kKept);
  if (found == context->saved_data.end()) return {};
  return c10::static_intrusive_pointer_cast<KeptSteps>(found->second.toCapsule());
}

Tensor StepLinear(const Tensor& x, const Tensor& weight, const Tensor& bias,
                  const StepSlopes& steps) {
  return StepLinearNode::apply(x, weight, Optional(bias), steps.anchor(), steps.kept());
}

Tensor StepBlockLinear(const Tensor& x, const Tensor& shared, const Tensor& weight,
                       const Tensor& bias, const StepSlopes& steps) {
  return StepBlockNode::apply(x, Optional(shared), weight, bias, steps.anchor(), steps.kept());
}

Tensor BlockProduct(const Tensor& x, const Tensor& shared, const Tensor& weight) {
  const std::int64_t in = x.size(1) / weight.size(0);
  Tensor out = torch::bmm(Blocks(x, weight.size(0)), weight.narrow(1, 0, in));
  if (shared.defined()) {
    out = out + torch::matmul(shared, weight.narrow(1, in, shared.size(1)));
  }
  return out.transpose(0, 1).reshape({x.size(0), -1});
}

}  // namespace tetrion
