/** An event of a stream: its name and its data. */
export interface StreamEvent {
  name: string;
  data: string;
}

/** Takes server-sent events apart (HTML, 9.2.6), piece by piece as they come. */
export class EventReader {
  #rest = "";
  #name = "";
  #data: string[] = [];

  push(piece: string): StreamEvent[] {
    const lines = piece.split("\n");
    lines[0] = this.#rest + lines[0]!;
    this.#rest = lines.pop()!;
    return lines.flatMap((line) => this.#take(line.endsWith("\r") ? line.slice(0, -1) : line));
  }

  #take(line: string): StreamEvent[] {
    if (line === "") {
      const [name, data] = [this.#name || "message", this.#data];
      [this.#name, this.#data] = ["", []];
      return data.length ? [{ name, data: data.join("\n") }] : [];
    }
    const [, field, value] = line.match(/^([^:]*):? ?(.*)$/s)!;
    if (field === "event") this.#name = value!;
    if (field === "data") this.#data.push(value!);
    return [];
  }
}
