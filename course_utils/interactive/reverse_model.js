// The reverse model in plain JavaScript: a Transformer with one post-norm block and one head, for one sequence.
// No element of the page is touched here. A matrix [rows][columns] is an array of Float64Arrays.

const LAYER_NORM_EPS = 1e-5; // PyTorch's

// The parameters by name, each {shape, values}, from float32 numbers in base64.
function readParameters(packed) {
  const bytes = Uint8Array.from(atob(packed.data), (letter) => letter.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  const parameters = {};
  let start = 0;
  for (const [name, shape] of packed.shapes) {
    const size = shape.reduce((product, side) => product * side, 1);
    const values = Float64Array.from({ length: size }, (_, index) => view.getFloat32(4 * (start + index), true));
    parameters[name] = { shape, values };
    start += size;
  }
  return parameters;
}

// x [T][in] -> x Wᵀ + b [T][out]
function linear(parameters, name, x) {
  const weight = parameters[name + ".weight"];
  const bias = parameters[name + ".bias"].values;
  const [outputs, inputs] = weight.shape;
  return x.map((row) => Float64Array.from(bias, (start, output) => {
    let sum = start;
    for (let input = 0; input < inputs; input++) sum += weight.values[output * inputs + input] * row[input];
    return sum;
  }));
}

// Each row to mean 0 and variance 1, then scaled and shifted.
function layerNorm(parameters, name, x) {
  const scale = parameters[name + ".weight"].values;
  const shift = parameters[name + ".bias"].values;
  return x.map((row) => {
    const mean = row.reduce((sum, value) => sum + value, 0) / row.length;
    const variance = row.reduce((sum, value) => sum + (value - mean) ** 2, 0) / row.length;
    return row.map((value, index) => ((value - mean) / Math.sqrt(variance + LAYER_NORM_EPS)) * scale[index] + shift[index]);
  });
}

function relu(x) {
  return x.map((row) => row.map((value) => Math.max(0, value)));
}

function add(x, y) {
  return x.map((row, index) => row.map((value, column) => value + y[index][column]));
}

function softmax(row) {
  const largest = Math.max(...row);
  const powers = row.map((value) => Math.exp(value - largest));
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
}

// Sines on even, cosines on odd dimensions, of position / 10000^(2i / width).
function positionalEncoding(length, width) {
  return Array.from({ length }, (_, position) => Float64Array.from({ length: width }, (_, dimension) => {
    const angle = position / 10000 ** ((dimension - (dimension % 2)) / width);
    return dimension % 2 ? Math.cos(angle) : Math.sin(angle);
  }));
}

// x [T][D] -> values [T][D] and attention [T][T]
function selfAttention(parameters, name, x) {
  const width = x[0].length;
  const qkv = linear(parameters, name + ".qkv_proj", x);
  const q = qkv.map((row) => row.slice(0, width));
  const k = qkv.map((row) => row.slice(width, 2 * width));
  const v = qkv.map((row) => row.slice(2 * width));
  const attention = q.map((query) => softmax(Float64Array.from(k, (key) =>
    key.reduce((sum, value, index) => sum + value * query[index], 0) / Math.sqrt(width))));
  const values = attention.map((weights) => Float64Array.from({ length: width }, (_, index) =>
    weights.reduce((sum, weight, key) => sum + weight * v[key][index], 0)));
  return { values: linear(parameters, name + ".o_proj", values), attention };
}

// Digits [T] -> logits [T][C] and attention [T][T].
function runReverseModel(parameters, digits) {
  const classes = parameters["input_net.1.weight"].shape[1];
  const oneHot = digits.map((digit) => Float64Array.from({ length: classes }, (_, index) => (index === digit ? 1 : 0)));
  let x = linear(parameters, "input_net.1", oneHot);
  x = add(x, positionalEncoding(x.length, x[0].length));

  const block = "transformer.layers.0.";
  const { values, attention } = selfAttention(parameters, block + "self_attn", x);
  x = layerNorm(parameters, block + "norm1", add(x, values));
  const inner = relu(linear(parameters, block + "linear_net.0", x));
  x = layerNorm(parameters, block + "norm2", add(x, linear(parameters, block + "linear_net.3", inner)));

  const hidden = relu(layerNorm(parameters, "output_net.1", linear(parameters, "output_net.0", x)));
  return { logits: linear(parameters, "output_net.4", hidden), attention };
}
