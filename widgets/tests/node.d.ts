/** The little of Node that tests use to read fixtures. */
declare module "node:fs" {
  export function readFileSync(path: URL | string): Uint8Array;
}
declare module "node:zlib" {
  export function gunzipSync(data: Uint8Array): Uint8Array;
}
declare module "node:url" {
  export function fileURLToPath(url: string): string;
}
declare const process: { cpuUsage(): { user: number; system: number } };
