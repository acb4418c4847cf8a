// Attention weights as they travel in the page, and what a mask makes of them. No element of the page is touched here.

// The bytes stand for whole numbers q of 8 or 16 bits (low byte first), and those for weights largest · (q / levels)².
function unpackWeights(packed) {
  const bytes = Uint8Array.from(atob(packed.data), (letter) => letter.charCodeAt(0));
  const wide = packed.bits === 16;
  const levels = wide ? 65535 : 255;
  const weights = new Float64Array(wide ? bytes.length / 2 : bytes.length);
  for (let i = 0; i < weights.length; i++) {
    const q = wide ? bytes[2 * i] + 256 * bytes[2 * i + 1] : bytes[i];
    weights[i] = packed.largest * (q / levels) ** 2;
  }
  return weights;
}

// One query's weights when some keys are masked: those get 0, and the others are divided by what is left of the sum,
// as the softmax over the keys that are left would give. A row with nothing left is zeros.
function maskedRow(row, masked) {
  if (!masked.some(Boolean)) return Array.from(row);
  let left = 0;
  row.forEach((weight, key) => { if (!masked[key]) left += weight; });
  return Array.from(row, (weight, key) => (masked[key] || left === 0 ? 0 : weight / left));
}
