"""The words that plain rules look for: English, Spanish, French, German, Portuguese, Italian.

Each set holds folded words (see `folding`) of all these languages together; Chinese and Japanese,
which write no spaces, stand in `han_words`. A word that is common outside talk about pictures is
left out, or stands in a set that never decides alone.
"""

from __future__ import annotations


def _words(*lines: str) -> frozenset[str]:
    return frozenset(word for line in lines for word in line.split())


# A picture, or a kind of picture.
PICTURE = _words(
    "image images img imgs picture pictures pic pics photo photos photograph photographs selfie",
    "portrait portraits poster posters logo logos sticker stickers cartoon cartoons cartoonify",
    "anime manga comic comics illustration illustrations illustrated drawing drawings sketch",
    "sketches painting paintings watercolor watercolour render renders rendering figurine avatar",
    "avatars wallpaper wallpapers thumbnail thumbnails meme memes infographic infographics collage",
    "mockup ghibli pixar lego chibi funko polaroid claymation isometric photorealistic artwork",
    "hyperrealistic cinematic headshot silhouette voxel minifigure diorama bobblehead emoji doodle",
    "headshots caricature caricatures coloring colouring 3d png storyboard photoshoot tarot",
    "imagen imágenes imagenes foto fotos fotografía retrato retratos cartel pegatina pegatinas",
    "dibujo dibujos ilustración ilustraciones pintura acuarela caricatura fondo_de_pantalla",
    "photographie photographies affiche affiches autocollant autocollants dessin dessins aquarelle",
    "bild bilder foto fotos plakat aufkleber zeichnung zeichnungen gemälde aquarell karikatur",
    "porträt illustrationen bildes bildern imagem imagens desenho desenhos ilustração figurinha",
    "figurinhas adesivo adesivos cartaz fotografia aquarela immagine immagini disegno disegni",
    "ritratto ritratti illustrazione acquerello vignetta locandina",
)
# What a picture looks like; too common to say alone that pictures are meant.
LOOK = _words(
    "style styles styled stylized background foreground scene lighting light realistic texture",
    "pixel aspect ratio art canvas cover banner icon icons badge keychain figure toy miniature",
    "vintage retro composition pastel neon bokeh lens closeup shadows palette typography font",
    "monochrome minimalist surreal steampunk cyberpunk futuristic landscape sculpture mural",
    "transparent glossy matte felt knitted crochet origami card packaging hair sky sunset",
    "octane hdr 4k 8k 35mm vector flat watercolors render shot view angle glowing colors colours",
    "estilo fondo realista escena luz textura personaje marioneta atardecer fond décor lumière",
    "arrière scène réaliste coucher personnage stil hintergrund szene licht realistisch textur",
    "sonnenuntergang farben fundo cena realista luz textura pôr stile sfondo scena luce realistico",
    "tramonto personaggio",
)
# To make or change a picture, in the forms that people use of themselves and of the model.
MAKING = _words(
    "make makes making made create creates creating created generate generates generating",
    "generated draw draws drawing drew drawn design designed turn turns turning turned transform",
    "transforms transformed convert converts converted render rendered edit edits editing edited",
    "redraw redrew recreate recreated restyle restyled reimagine reimagined paint painted cartoonify",
    "illustrate illustrated colorize colorized colourise restore restored photoshop produce produced",
    "crea crear creé creado creada creando genera generar generé generado generada generando haz",
    "hacer hice hecho hecha dibuja dibujar dibujó dibujado convierte convertir convirtió convertí",
    "transforma transformar transformó diseña diseñar editar editado crée créer créé créée génère",
    "générer généré générée fait faire dessine dessiner dessiné transforme transformer transformé",
    "convertis modifier modifié imaginé erstelle erstellen erstellt erzeugen erzeugt generieren",
    "generiert generierte mach machen gemacht zeichne zeichnen gezeichnet verwandeln verwandelt",
    "gestaltet bearbeiten bearbeitet crie criar criei criado criada gere gerar gerei gerado gerada",
    "faça fazer fiz feito feita desenhe desenhar desenhou transforme transformei transformou editei",
    "creare creato creata generare generato generata fatto fatta disegnare disegnato trasformare",
    "trasformato modificato",
)
# First word of an instruction that, beside a word for a picture, can hardly mean anything else.
ORDER = _words(
    "create generate draw redraw render transform convert turn design paint illustrate sketch make",
    "restyle reimagine recreate retexture colorize colourise cartoonify animate depict visualize",
    "visualise photograph edit crea créame creame genera generar dibuja dibújame convierte transforma",
    "diseña pinta haz hazme ilustra recrea convierta crear dibujar crée créez créer génère générez",
    "générer dessine dessinez transforme transformez convertis convertissez illustre imagine imaginez",
    "erstelle erstell erzeuge generiere zeichne verwandle wandle male gestalte entwirf mach mache",
    "crie gere gera desenhe converta transforme pinte faça faz ilustre recrie desenha genera disegna",
    "disegnami trasforma converti dipingi progetta illustra fai",
)
# First word of an instruction, but common elsewhere.
WEAK_ORDER = _words(
    "add remove replace change put place show give use take swap combine merge blend integrate",
    "apply keep restore upscale enlarge imagine produce craft build colour color crop fix set write",
    "agrega añade quita cambia pon reemplaza muestra usa elimina ajoute remplace change mets enlève",
    "montre utilise supprime füge ersetze entferne ändere zeig zeige stelle setze nimm adicione",
    "remova mude coloque imagine mostre troque tire aggiungi rimuovi cambia metti immagina mostra",
    "sostituisci",
)
# May stand before an order.
OPENERS = _words(
    "please pls plz now then next okay ok hey also just can could would you chatgpt gpt ahora luego",
    "por favor puedes podrías maintenant peux tu pouvez vous bitte jetzt kannst du agora você pode",
    "poderia adesso puoi per favore",
)
ARTIFICIAL = _words(
    "ai ki ia aiart genai gpt gpts llm llms chatbot chatbots neural diffusion model models modelo",
    "modelos modèle modell modelle artificial artificielle künstliche inteligencia künstlicher",
    "aigenerated generativeai imagegen",
)
# One word, mostly a hashtag, that says images are generated.
GENERATION = _words(
    "imagegen txt2img img2img text2image aiart aiartwork aigeneratedart aiartcommunity aiimage",
    "aiimages aigenerated promptshare gptimage 4oimage 4oimagegen imagegeneration ghiblified",
    "ghiblify ghiblistyle bildgenerator bildgenerierung bildgenerators bilderzeugung",
    "texttoimage ki_bild kibild kibilder kikunst",
)
# Two words that say it together; the first is looked for only where the second is.
GENERATION_HEADS = _words(
    "image images imagen imágenes imagenes imagem imagens immagini immagine text ai ki ia bilder",
    "photo photos picture pictures art gpt bild",
)
PROMPT = _words("prompt prompts promt promts prompting")
# Other languages' words for a prompt, which mean it only before a colon at the start of a line.
PROMPT_BY_COLON = _words(
    "instrucción instrucciones indicación consigne instruction anweisung eingabe comando instrução",
    "istruzione variation variante tweak",
)
# Uses of a language model that have nothing to do with pictures.
TEXT_USE = _words(
    "essay essays code coding coder python javascript sql homework email emails summarize summarise",
    "summary summaries translate translation therapist therapy resume cv lawyer legal spreadsheet",
    "excel regex debug refactor thesis paper papers exam exams math algebra poem poems recipe recipes",
    "benchmark benchmarks context tokens token reasoning voice latency pricing api stock stocks",
    "article blog newsletter marketing seo ensayo código tarea deberes correo resumen traducir",
    "traducción tesis examen poema receta dissertation devoirs courriel résumé traduire traduction",
    "thèse poème recette aufsatz hausaufgaben zusammenfassung zusammenfassen übersetzen übersetzung",
    "gedicht rezept redação dever resumo traduzir tradução poesia receita tema codice compiti",
    "riassunto tradurre tesi ricetta",
)
# To look at a picture that exists.
LOOKING = _words(
    "analyze analyse analyzes analyzed analysed read reads reading recognize recognise recognizes",
    "identify identifies identified describe describes described understand understands ocr detect",
    "recognition vision geoguess locate analiza analizar leer lee reconoce analyser lire reconnaît",
    "analysieren erkennt erkennen lesen analisar ler reconhece analizzare leggere riconosce",
)
WONDER = _words(
    "insane wow woah whoa unreal crazy wild mindblowing mindblown incredible omg amazing bonkers",
    "unbelievable magic magical stunning wtf increíble brutal alucinante flipante incroyable dingue",
    "bluffant ouf wahnsinn krass unglaublich irre incrível sensacional incredibile pazzesco assurdo",
)
PRAISE = WONDER | _words(
    "love loved loves loving awesome great cool coolest beautiful beautifully nice gorgeous lovely",
    "perfect perfectly fantastic adorable cute brilliant excellent impressive impressed hilarious",
    "genius wonderful best good better works worked nailed fire dope sick epic superb flawless",
    "accurate flawlessly spectacular outstanding delightful lol haha yay bravo nailing nicely fab",
    "favorite favourite obsessed delighted fun funny charming slick crisp convincing lifelike",
    "genial precioso preciosa perfecto perfecta encanta hermoso hermosa bonito bonita chulo chula",
    "maravilloso espectacular funciona funcionó buenísimo bueno buena génial superbe magnifique",
    "parfait parfaite adore sublime excellente fonctionne marche joli jolie beau belle réussi toll",
    "super schön wunderschön perfekt liebe geil klasse genial funktioniert großartig gelungen klappt",
    "lindo linda perfeito perfeita adorei amei maravilhoso ótimo ótima funcionou bom demais bello",
    "bella bellissimo bellissima perfetto perfetta adoro stupendo fantastico funziona ottimo",
)
COMPLAINT = _words(
    "bad terrible awful ugly wrong fail fails failed failing failure broken weird creepy worse",
    "worst blurry distorted inaccurate refuse refuses refused refusal horrible garbage slop meh",
    "disappointing disappointed boring lame mess messed unusable uncanny yellowish overcooked",
    "misspelled typo typos garbled extra_fingers lost hate hated hates ruined mangled plastic",
    "unfortunately struggles struggled hallucinated ignored ignores cropped malo mala feo fea horrible",
    "falla falló fallo borroso peor rechazó decepcionante mauvais mauvaise moche raté ratée échoue",
    "échoué flou pire refuse décevant affreux schlecht hässlich falsch kaputt unscharf schlimm leider",
    "misslungen enttäuschend klappt_nicht abgelehnt ruim feio feia falhou falha borrado pior recusou",
    "decepcionante errado brutto brutta sbagliato fallito sfocato peggio rifiuta deludente orribile",
)
# What the writer of a verdict says beside the verdict itself, and a title does not.
SELF = _words(
    "this it its is are was were so i im ive my me they these that just really very looks look came",
    "turned works worked result results wow esto es está son muy mi me quedó resultado que c est",
    "ce cette très mon j ai résultat das ist sind war sehr so mein mich ergebnis isto é está são",
    "muito meu ficou questo è sono molto mio risultato",
)
TRIED = _words(
    "tried trying attempt attempts mine result results output outputs testing tested used using",
    "probé probado intenté intento salió usé usado resultado resultados mío mía essayé testé utilisé",
    "résultat résultats mien mienne essai probiert ausprobiert versucht getestet ergebnis ergebnisse",
    "benutzt versuch testei tentei usei tentativa minha meu provato usato risultato risultati mio",
    "got ran version turn try here heres",
)
# Common words by which a language that is covered is recognised.
FAMILIAR = _words(
    "the and of to is are was were in on for with that this it you not what how why who when they",
    "we he she his her my your our from by at as be have has had will would can do does did just so",
    "but or if all about like more no than then there their them been out up get got one new now",
    "el la los las del que y en un una por con para es no se su lo como más pero sus le ya este esta",
    "sí porque cuando muy sin sobre también me hasta hay donde quien desde todo nos esto les hoy",
    "le les des et est une pour dans qui pas sur avec ce il elle nous vous ne plus au par je tout",
    "mais fait être cette son sa ses aux ont c'est très bien comme sont du",
    "der die das und ist nicht ein eine zu mit auf für von sich den dem auch es an wie im ich sie",
    "wir aber noch nur hat haben wird bei oder nach wenn kann mehr aus so sind dass über hier",
    "o os as do da dos das que e não uma um com para por mais como mas foi ao ele ela isso este essa",
    "são muito já também só pelo pela até eu você meu minha tem ser quando",
    "il lo gli di che non per una sono con come ma più anche questo questa è nel della dei alla si",
)
# The same for languages that share words with them and are not covered.
ELSEWHERE = _words(
    "het een niet voor zijn dat ik je maar ook naar deze wat werd met heb heeft worden wel",
    "och att det som på är för inte jag har av ett den till med om ikke og jeg på er vi kan ikke",
    "yang dan ini itu untuk dengan tidak ada saya kamu akan bisa dari pada juga sudah apa aku",
    "și este nu din pentru cu care mai sau sunt ca fi ale acest lui pe",
    "nie się jest jak czy tak ale już przez tylko może bardzo jako dla było są na to że",
    "bir ve bu için çok da ile ne gibi daha olarak ama var değil ben sen mi",
    "ang ng mga sa na ay ko mo siya hindi ito po lang din yung si nang at kung",
    "és hogy nem egy az ez van mint csak már még volt ja hän että mutta kun niin ovat tämä",
    "je se na že to jsem jako ale tak pro jak nebo když není bude si và là của có không một",
    "amb els les dels aquest però més molt són",
)
