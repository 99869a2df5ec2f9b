/** A record as it may really be: one of an earlier version lacks fields, and none of them is worth an error. */
export type Lenient<T> = T extends (infer E)[]
  ? Lenient<E>[]
  : T extends object
    ? { [K in keyof T]?: Lenient<T[K]> | null }
    : T;
