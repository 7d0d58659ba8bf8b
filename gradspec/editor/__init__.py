"""The language server, `gradspec lsp`: pygls is imported by `server` alone."""
