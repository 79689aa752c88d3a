// Starts `dpm lsp` for .dpm files.

const { window, workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

async function activate() {
  const command = workspace.getConfiguration("dpm").get("path");
  const server = { command, args: ["lsp"] };
  client = new LanguageClient("dpm", "dpm", server, {
    documentSelector: [{ language: "dpm" }],
    synchronize: { fileEvents: workspace.createFileSystemWatcher("**/*.constants.json") },
  });
  try {
    await client.start();
  } catch (error) {
    client = undefined;
    window.showErrorMessage(
      `Cannot start \`${command} lsp\`, so that .dpm files have colours only. Install dpm, or set dpm.path. (${error.message})`,
    );
  }
}

function deactivate() {
  return client?.stop();
}

module.exports = { activate, deactivate };
