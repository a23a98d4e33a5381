/** A guard's source as the user's code has it: `L['self']._modules['up']` is `self.up`. */
export const readable = (source: string): string =>
  source
    .replace(/\b[LG]\['([^']*)'\]/g, "$1")
    .replace(/\b__import_(\w+?)(?=[.…]|$)/g, (_, name: string) => name.replaceAll("_dot_", "."))
    .replace(/\b__builtins_dict___\d+\['(\w+)'\]/g, "$1")
    .replace(/\.(?:_modules|_parameters|_buffers|__dict__)\['([^']*)'\]/g, (_, name: string) =>
      /^\d/.test(name) ? `[${name}]` : `.${name}`,
    );
